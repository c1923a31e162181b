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
// are taken, a newcomer gets that of a connection on which no request is served, of the host
// that has the most (admission.Table): clients that connect and do nothing keep nobody out.
type Listener struct {
	*net.TCPListener
	Places admission.Table
	wrap   func(*Conn) net.Conn
}

// Listen bounds the connections that a listener accepts; wrap is Config.Wrap.
func Listen(l *net.TCPListener, wrap func(*Conn) net.Conn) *Listener {
	most := int64(socket.BoundByFiles(maxConns))
	return &Listener{TCPListener: l, wrap: wrap, Places: admission.Table{Limits: admission.Limits{
		Total: admission.Load{most}, PerHost: admission.Load{max(most*maxConnsPerHost/maxConns, 1)}, Replace: true}}}
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
		c := &Conn{TCPConn: tcp, listener: l, place: &admission.Entry{Host: admission.Host(at.Addr()), ActiveUntil: now,
			Evict: func() { _ = tcp.Close() }}} // the server that reads from it finds out and closes it
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

// use makes the connection active while a request is served, and idle from now on while none is.
func (c *Conn) use() {
	var until time.Time
	if !c.busy.Load() {
		until = time.Now()
	}
	c.listener.Places.Extend(c.place, until)
}

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
