package ndt7

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Conn is a TCP connection that counts, below TLS and WebSocket, what is read and written
// while a test runs, and that reads the kernel's account.
type Conn struct {
	*net.TCPConn
	leave func() // tells the Listener; nil: nobody

	mu        sync.Mutex // guards what follows
	clock     time.Time  // when the test began; zero: none runs
	in, out   side
	kernel    *socket.Stream // nil: no test runs
	handshake *transfer.Handshake
}

// side is what one direction did since the test began.
type side struct {
	bytes   int64
	under   bool // a call is under way, since that time
	since   time.Duration
	blocked time.Duration
}

// Read counts. The kernel is waited for in here, and nowhere else.
func (c *Conn) Read(b []byte) (int, error) {
	c.enter(&c.in)
	n, err := c.TCPConn.Read(b)
	c.exit(&c.in, n)
	return n, err
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
	if c.leave != nil {
		c.leave()
	}
	return c.TCPConn.Close()
}

// begin starts the count of a test on a clock that starts now.
func (c *Conn) begin(o socket.Options) error {
	kernel, err := socket.Watch(c.TCPConn, o)
	if err != nil {
		return err
	}
	handshake := kernel.Describe().Handshake
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock, c.kernel, c.handshake = time.Now(), kernel, handshake
	c.in, c.out = side{under: c.in.under}, side{under: c.out.under}
	return nil
}

// end ends the count and describes the connection.
func (c *Conn) end() transfer.Stream {
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
	s.Program, s.Blocked = mine.bytes, mine.blocked
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

// remote is whose connection it is.
func (c *Conn) remote() netip.AddrPort {
	at, _ := c.RemoteAddr().(*net.TCPAddr)
	if at == nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(at.AddrPort().Addr().Unmap(), at.AddrPort().Port())
}

// subscriber is whose tests are counted together: an IPv4 address or an IPv6 /64.
func subscriber(c *Conn) netip.Prefix { return socket.Subscriber(c.remote().Addr()) }

// Listener accepts connections whose account a Server can read. It holds so many at a time,
// and of one address (an IPv4 address, an IPv6 /64) so many: who comes beyond that is reset
// at once, so that nobody waits behind strangers.
type Listener struct {
	*net.TCPListener
	most, mostOfOne int

	mu  sync.Mutex // guards what follows
	all int
	of  map[netip.Prefix]int
}

// NewListener bounds a listener.
func NewListener(l *net.TCPListener, most, mostOfOne int) *Listener {
	return &Listener{TCPListener: l, most: most, mostOfOne: mostOfOne, of: map[netip.Prefix]int{}}
}

// Accept answers *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		tcp, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		c := &Conn{TCPConn: tcp}
		who := subscriber(c)
		if !l.enter(who) {
			_ = tcp.SetLinger(0) // nothing is left to be sent
			_ = tcp.Close()
			continue
		}
		c.leave = sync.OnceFunc(func() { l.exit(who) })
		return c, nil
	}
}

func (l *Listener) enter(who netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= l.most || l.of[who] >= l.mostOfOne {
		return false
	}
	l.all++
	l.of[who]++
	return true
}

func (l *Listener) exit(who netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.of[who]--; l.of[who] <= 0 {
		delete(l.of, who)
	}
}

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
