package httpserver

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// How many connections a listener holds, in total and of one host (an IPv4 address or an IPv6
// /64); fewer where the process may open few files. A connection in the middle of a TLS
// handshake takes some 40 KiB.
const (
	maxConns        = 768
	maxConnsPerHost = 512
)

// Listener accepts connections for a http.Server whose ConnState is TrackState. When all places
// are taken, the host that has the most connections makes room (admission.Table), first with one on which no
// request is served: clients that connect and do nothing keep nobody out.
type Listener struct {
	*net.TCPListener
	Places admission.Table
	wrap   func(*Conn) net.Conn
}

// Listen bounds the connections that a listener accepts; wrap is Config.Wrap.
func Listen(l *net.TCPListener, wrap func(*Conn) net.Conn) *Listener {
	most := int64(socket.BoundByFiles(maxConns))
	return &Listener{TCPListener: l, wrap: wrap, Places: admission.Table{Limits: admission.Limits{
		Total: admission.Load{most}, PerHost: admission.Load{max(most*maxConnsPerHost/maxConns, 1)}}}}
}

// Accept returns a *Conn, or what Config.Wrap makes of it.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		tcp, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		at, _ := netip.ParseAddrPort(tcp.RemoteAddr().String())
		now := time.Now()
		c := &Conn{TCPConn: tcp, listener: l, place: newPlace(at.Addr(), now)}
		c.place.Evict = func() { _ = tcp.Close() } // the server that reads from it finds out and closes it
		if l.Places.Admit(c.place, now) != nil {
			_ = tcp.Close()
			continue
		}
		if l.wrap != nil {
			return l.wrap(c), nil
		}
		return c, nil
	}
}

// Conn is an accepted connection that has a place at its listener until it is closed.
type Conn struct {
	*net.TCPConn
	listener *Listener
	place    *admission.Entry
	busy     atomic.Bool // a request is served
	leave    sync.Once
}

// Read reads. A connection that sends something is used, so that one that is silent for longer
// is evicted before it.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if n > 0 && !c.busy.Load() {
		c.use()
	}
	return n, err
}

// Close gives the place back.
func (c *Conn) Close() error {
	c.leave.Do(func() { c.listener.Places.Release(c.place) })
	return c.TCPConn.Close()
}

// Keep protects the connection from losing its place, or no longer does.
func (c *Conn) Keep(kept bool) {
	c.listener.Places.Pin(c.place, kept)
}

// newPlace returns the place of a connection that has sent nothing yet.
func newPlace(from netip.Addr, now time.Time) *admission.Entry {
	return &admission.Entry{Host: admission.Host(from), ActiveUntil: lastUse(now, false)}
}

// idleHandicap makes a connection without a request look longer unused than one with a request. No request
// lasts as long.
const idleHandicap = time.Hour

// lastUse returns ActiveUntil of a connection that was used now. It is never in the future: the table then takes
// each connection as idle, and the host that has the most makes room, whatever its connections do.
func lastUse(now time.Time, busy bool) time.Time {
	if busy {
		return now
	}
	return now.Add(-idleHandicap)
}

// use records that the connection was used now.
func (c *Conn) use() { c.listener.Places.Extend(c.place, lastUse(time.Now(), c.busy.Load())) }

// TrackState is the ConnState of a http.Server that serves a Listener: it tells connections on
// which a request is served from those that wait for one.
func TrackState(c net.Conn, state http.ConnState) {
	own, ok := c.(*Conn)
	for !ok {
		layer, is := c.(interface{ NetConn() net.Conn })
		if !is {
			return
		}
		c = layer.NetConn()
		own, ok = c.(*Conn)
	}
	switch state {
	case http.StateActive, http.StateHijacked:
		own.busy.Store(true)
		own.use()
	case http.StateIdle:
		own.busy.Store(false)
		own.use()
	}
}
