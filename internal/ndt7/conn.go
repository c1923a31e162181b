package ndt7

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/httpserver"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Conn is a TCP connection that counts, below TLS and WebSocket, what is read and written
// while a test runs, and that reads the kernel's account.
type Conn struct {
	*net.TCPConn
	accepted *httpserver.Conn // nil: it was dialled

	mu        sync.Mutex // guards what follows
	clock     time.Time  // when the test began; zero: none runs
	in, out   side
	kernel    *socket.Stream // nil: no test runs
	handshake *transfer.Handshake
	bounded   bool
	spare     int64 // bytes that may be read before the next load, where bounded
}

// Accepted returns a Conn of one that a server accepted, for httpserver.Config.Wrap.
func Accepted(c *httpserver.Conn) net.Conn { return &Conn{TCPConn: c.TCPConn, accepted: c} }

// NetConn returns the connection as it was accepted.
func (c *Conn) NetConn() net.Conn { return c.accepted }

// side is what one direction did since the test began.
type side struct {
	bytes   int64
	under   bool // a call is under way, since that time
	since   time.Duration
	blocked time.Duration
}

// errNoLoad is what a connection ends with on which too much came beside the load.
var errNoLoad = fmt.Errorf("%w: more comes than load, messages about it and what frames them", errFoul)

// Read counts. The kernel is waited for in here, and nowhere else.
func (c *Conn) Read(b []byte) (int, error) {
	c.enter(&c.in)
	n, err := c.read(b)
	if c.exit(&c.in, n); !c.mayHave(n) {
		return 0, errNoLoad
	}
	return n, err
}

func (c *Conn) read(b []byte) (int, error) {
	if c.accepted != nil {
		return c.accepted.Read(b)
	}
	return c.TCPConn.Read(b)
}

// mayHave books bytes that were read, and says whether so many may be.
func (c *Conn) mayHave(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.bounded {
		return true
	}
	c.spare -= int64(n)
	return c.spare >= 0
}

// mostBeside may come of a client in one test beside its load, bytes: some hundred measurements,
// and what a read takes before it is known to be load.
const mostBeside = 256 << 10

// bound has the connection end once so many bytes were read that are no load.
func (c *Conn) bound(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bounded = true
	c.spare = bytes
}

// loaded makes up for load that came, and for TLS's and WebSocket's share of it.
func (c *Conn) loaded(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare = min(c.spare+int64(n)+int64(n)/8, mostBeside)
}

// Bound has the connection behind a request's context end once so many more bytes were read.
func Bound(ctx context.Context, bytes int64) {
	if c := connOf(ctx); c != nil {
		c.bound(bytes)
	}
}

// Write counts.
func (c *Conn) Write(b []byte) (int, error) {
	c.enter(&c.out)
	n, err := c.TCPConn.Write(b)
	c.exit(&c.out, n)
	return n, err
}

func (c *Conn) enter(s *side) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.under = true
	if !c.clock.IsZero() {
		s.since = time.Since(c.clock)
	}
}

func (c *Conn) exit(s *side, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.under = false
	if !c.clock.IsZero() {
		s.bytes += int64(n)
		s.blocked += max(time.Since(c.clock)-s.since, 0)
	}
}

// Close may be called more than once.
func (c *Conn) Close() error {
	if c.accepted != nil {
		return c.accepted.Close()
	}
	return c.TCPConn.Close()
}

// begin starts the count of a test on a clock that starts now. Until end the connection keeps its
// place at the listener.
func (c *Conn) begin(o socket.Options) error {
	kernel, err := socket.Watch(c.TCPConn, o)
	if err != nil {
		return err
	}
	if c.accepted != nil {
		c.accepted.Keep(true)
	}
	handshake := kernel.Describe().Handshake
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock = time.Now()
	c.kernel = kernel
	c.handshake = handshake
	c.in = side{under: c.in.under}
	c.out = side{under: c.out.under}
	return nil
}

// end ends the count and describes the connection.
func (c *Conn) end() transfer.Stream {
	if c.accepted != nil {
		c.accepted.Keep(false)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.kernel.Describe()
	_ = c.kernel.Close() // a descriptor of our own, beside the connection's
	c.kernel = nil
	return s
}

// sample reads the account; ok is false where there is none any more.
func (c *Conn) sample(sender bool) (s transfer.Sample, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == nil || c.kernel.Sample(&s, sender) != nil {
		return s, false
	}
	s.At = time.Since(c.clock)
	mine := &c.in
	if sender {
		mine = &c.out
	}
	s.Have |= transfer.HaveProgram
	s.Program = mine.bytes
	s.Blocked = mine.blocked
	if mine.under {
		s.Blocked += max(s.At-mine.since, 0)
	}
	return s, true
}

// written is all that was handed to the kernel since the test began, bytes.
func (c *Conn) written() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.bytes
}

// share is what part so much payload is of all that was written.
func (c *Conn) share(payload int64) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return min(float64(payload)/float64(max(c.out.bytes, 1)), 1)
}

func (c *Conn) mss() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handshake == nil {
		return 0
	}
	return c.handshake.MSS
}

// remote is where the far end is.
func (c *Conn) remote() netip.AddrPort { return socket.AddrPort(c.RemoteAddr()) }

type connKey struct{}

// WithConn is http.Server's ConnContext: requests find their connection by it, also under TLS.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if own, ok := c.(*Conn); ok {
		return context.WithValue(ctx, connKey{}, own)
	}
	return ctx
}

func connOf(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

// subscriber returns whose tests are counted together: an IPv4 address or an IPv6 /64.
func subscriber(c *Conn) netip.Prefix { return admission.Host(c.remote().Addr()) }
