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

// Limits of a listener's connections, in total and per host (an IPv4 address or an IPv6 /64), lowered to the
// process's open-file limit. A connection in a TLS handshake takes about 40 KiB.
const (
	maxConns        = 768
	maxConnsPerHost = 512
)

// Listener accepts connections for a http.Server whose ConnState is TrackState. When all slots are taken, it
// evicts a connection of the host with most connections (admission.Table), first one without an active request.
type Listener struct {
	*net.TCPListener
	Places   admission.Table
	unproven *admission.Table // of connections before Prove; nil: they are in Places
	wrap     func(*Conn) net.Conn
}

// Listen limits a listener's connections. wrap is Config.Wrap.
func Listen(l *net.TCPListener, wrap func(*Conn) net.Conn) *Listener {
	most := int64(socket.BoundByFiles(maxConns))
	return &Listener{TCPListener: l, wrap: wrap, Places: admission.Table{Limits: admission.Limits{
		Total: admission.Load{most}, PerHost: admission.Load{max(most*maxConnsPerHost/maxConns, 1)}}}}
}

// Accept returns a *Conn, or Config.Wrap's result.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		tcp, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		at, _ := netip.ParseAddrPort(tcp.RemoteAddr().String())
		now := time.Now()
		c := &Conn{TCPConn: tcp, table: &l.Places, listener: l, place: newEntry(at.Addr(), now)}
		if l.unproven != nil {
			c.table = l.unproven
		}
		c.place.Evict = func() { _ = tcp.Close() } // the server's next read fails and closes it
		if c.table.Admit(c.place, now) != nil {
			_ = tcp.Close()
			continue
		}
		if l.wrap != nil {
			return l.wrap(c), nil
		}
		return c, nil
	}
}

// Conn is an accepted connection. It has a slot at its listener until it is closed.
type Conn struct {
	*net.TCPConn
	listener *Listener
	place    *admission.Entry
	busy     atomic.Bool // has an active request

	mu     sync.Mutex       // guards the fields below
	table  *admission.Table // has place
	closed bool
}

// Read marks the connection as used, so that silent connections are evicted before it.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if n > 0 && !c.busy.Load() {
		c.use()
	}
	return n, err
}

// Close frees the slot.
func (c *Conn) Close() error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		c.table.Release(c.place)
	}
	c.mu.Unlock()
	return c.TCPConn.Close()
}

// prove moves the connection to the slots of known clients. It ends if there is none.
func (c *Conn) prove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.table == &c.listener.Places {
		return
	}
	c.table.Release(c.place)
	c.table = &c.listener.Places
	if c.table.Admit(c.place, time.Now()) != nil {
		_ = c.TCPConn.Close() // the server's next read fails and closes it
	}
}

// slots returns the table that has the connection.
func (c *Conn) slots() *admission.Table {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.table
}

// Keep sets whether the connection is protected from eviction.
func (c *Conn) Keep(kept bool) {
	c.slots().Pin(c.place, kept)
}

// newEntry returns the entry of a connection that has sent nothing yet.
func newEntry(from netip.Addr, now time.Time) *admission.Entry {
	return &admission.Entry{Host: admission.Host(from), ActiveUntil: lastUse(now, false)}
}

// idlePenalty makes a connection without a request look older than any with a request. It exceeds the longest
// request.
const idlePenalty = time.Hour

// lastUse returns ActiveUntil of a connection used now. It is never in the future, so the table treats each
// connection as idle and evicts from the host with most connections.
func lastUse(now time.Time, busy bool) time.Time {
	if busy {
		return now
	}
	return now.Add(-idlePenalty)
}

// use records the use of the connection.
func (c *Conn) use() { c.slots().Extend(c.place, lastUse(time.Now(), c.busy.Load())) }

// TrackState is the ConnState of a http.Server with a Listener. It tracks which connections have an active
// request.
func TrackState(c net.Conn, state http.ConnState) {
	own := accepted(c)
	if own == nil {
		return
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

// accepted returns the accepted connection below others, or nil.
func accepted(c net.Conn) *Conn {
	for {
		if own, is := c.(*Conn); is {
			return own
		}
		layer, is := c.(interface{ NetConn() net.Conn })
		if !is {
			return nil
		}
		c = layer.NetConn()
	}
}
