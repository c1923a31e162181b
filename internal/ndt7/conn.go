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

// Conn is a TCP connection that counts, below TLS and WebSocket, the bytes of a running test and reads TCP_INFO.
type Conn struct {
	*net.TCPConn
	accepted *httpserver.Conn // nil: a client's

	mu          sync.Mutex // guards the fields below
	clock       time.Time  // start of the test; zero: none
	in, out     ioCounts
	kernel      *socket.Stream // nil: no test
	handshake   *transfer.Handshake
	readLimited bool
	readBudget  int64 // bytes that may be read before the next payload, if limited
}

// Accepted returns a Conn of an accepted connection, for httpserver.Config.Wrap.
func Accepted(c *httpserver.Conn) net.Conn { return &Conn{TCPConn: c.TCPConn, accepted: c} }

// NetConn returns the accepted connection.
func (c *Conn) NetConn() net.Conn { return c.accepted }

// ioCounts are one direction's counts since the test began.
type ioCounts struct {
	bytes        int64
	isBlocked    bool // a call has been in progress since blockedSince
	blockedSince time.Duration
	blocked      time.Duration
}

// errTooMuchOverhead ends a connection with too many bytes besides payload.
var errTooMuchOverhead = fmt.Errorf("%w: too many bytes besides payload, measurements and framing", errProtocol)

// Read counts bytes and blocked time. Only this method waits for the kernel.
func (c *Conn) Read(b []byte) (int, error) {
	c.enter(&c.in)
	n, err := c.read(b)
	if c.exit(&c.in, n); !c.countRead(n) {
		return 0, errTooMuchOverhead
	}
	return n, err
}

func (c *Conn) read(b []byte) (int, error) {
	if c.accepted != nil {
		return c.accepted.Read(b)
	}
	return c.TCPConn.Read(b)
}

// countRead counts read bytes and reports whether they are within the limit.
func (c *Conn) countRead(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.readLimited {
		return true
	}
	c.readBudget -= int64(n)
	return c.readBudget >= 0
}

// maxOverhead limits a client's bytes besides payload in one test: about a hundred measurements, and one read
// before it is known to be payload.
const maxOverhead = 256 << 10

// limitOverhead ends the connection after the given number of bytes besides payload.
func (c *Conn) limitOverhead(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readLimited = true
	c.readBudget = bytes
}

// creditPayload raises the limit by received payload with TLS's and WebSocket's overhead.
func (c *Conn) creditPayload(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readBudget = min(c.readBudget+int64(n)+int64(n)/8, maxOverhead)
}

// LimitRead ends the connection of a request's context after the given number of read bytes.
func LimitRead(ctx context.Context, bytes int64) {
	if c := connOf(ctx); c != nil {
		c.limitOverhead(bytes)
	}
}

// Write counts bytes and blocked time.
func (c *Conn) Write(b []byte) (int, error) {
	c.enter(&c.out)
	n, err := c.TCPConn.Write(b)
	c.exit(&c.out, n)
	return n, err
}

func (c *Conn) enter(s *ioCounts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.isBlocked = true
	if !c.clock.IsZero() {
		s.blockedSince = time.Since(c.clock)
	}
}

func (c *Conn) exit(s *ioCounts, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.isBlocked = false
	if !c.clock.IsZero() {
		s.bytes += int64(n)
		s.blocked += max(time.Since(c.clock)-s.blockedSince, 0)
	}
}

// Close is idempotent.
func (c *Conn) Close() error {
	if c.accepted != nil {
		return c.accepted.Close()
	}
	return c.TCPConn.Close()
}

// begin starts a test's counts and clock. Until end the listener does not evict the connection.
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
	c.in = ioCounts{isBlocked: c.in.isBlocked}
	c.out = ioCounts{isBlocked: c.out.isBlocked}
	return nil
}

// end stops the counts and describes the connection.
func (c *Conn) end() transfer.Stream {
	if c.accepted != nil {
		c.accepted.Keep(false)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.kernel.Describe()
	_ = c.kernel.Close() // a duplicate of the connection's descriptor
	c.kernel = nil
	return s
}

// sample reads TCP_INFO. ok is false if the connection is gone.
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
	if mine.isBlocked {
		s.Blocked += max(s.At-mine.blockedSince, 0)
	}
	return s, true
}

// written returns the bytes written to the kernel since the test began.
func (c *Conn) written() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.bytes
}

// payloadShare returns the payload's share of all written bytes.
func (c *Conn) payloadShare(payload int64) float64 {
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

// remote returns the far end's address.
func (c *Conn) remote() netip.AddrPort { return socket.AddrPort(c.RemoteAddr()) }

type connKey struct{}

// WithConn is http.Server's ConnContext. It stores the connection, also under TLS.
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

// subscriber returns the network whose tests are counted together: an IPv4 address or an IPv6 /64.
func subscriber(c *Conn) netip.Prefix { return admission.Host(c.remote().Addr()) }
