package httpserver

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

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
// that has the most (socket.Places): clients that connect and do nothing keep nobody out.
type Listener struct {
	*net.TCPListener
	Places socket.Places[*Conn]
	wrap   func(*Conn) net.Conn
}

// Listen bounds the connections that a listener accepts; wrap is Config.Wrap.
func Listen(l *net.TCPListener, wrap func(*Conn) net.Conn) *Listener {
	most := socket.BoundByFiles(maxConns)
	return &Listener{TCPListener: l, wrap: wrap, Places: socket.Places[*Conn]{Max: most,
		MaxPerHost: max(most*maxConnsPerHost/maxConns, 1)}}
}

// Accept returns a *Conn, or what Config.Wrap makes of it.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		tcp, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		at, _ := netip.ParseAddrPort(tcp.RemoteAddr().String())
		c := &Conn{TCPConn: tcp, listener: l, from: at.Addr()}
		evicted, ok := l.Places.Enter(c.from, c)
		if evicted != nil {
			_ = evicted.TCPConn.Close() // the server that reads from it finds out and closes it
		}
		if !ok {
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
	from     netip.Addr
	busy     atomic.Bool // a request is served
	kept     atomic.Bool
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
	c.leave.Do(func() { c.listener.Places.Leave(c.from, c) })
	return c.TCPConn.Close()
}

// Keep protects the connection from losing its place, or no longer does.
func (c *Conn) Keep(kept bool) {
	c.kept.Store(kept)
	c.use()
}

func (c *Conn) use() {
	hold := socket.Idle
	switch {
	case c.kept.Load():
		hold = socket.Kept
	case c.busy.Load():
		hold = socket.Busy
	}
	c.listener.Places.Use(c.from, c, hold)
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
