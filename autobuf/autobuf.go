// Package autobuf gives a program's TCP connections the buffers that their paths need.
//
// A TCP connection fills its path only while a bandwidth-delay product of data is in
// flight, and the send buffer on one side and the receive buffer on the other bound
// that. Systems size both by themselves, up to a ceiling; today that is good enough for
// most paths and autobuf then changes nothing. Where a path needs more than the ceiling,
// autobuf asks for it with SO_SNDBUF and SO_RCVBUF, before connect or listen if the path
// is stated and on the living connection if it is not, as far as the system allows
// (Linux: net.core.wmem_max and rmem_max).
//
// Use a Dialer in place of net.Dialer and a ListenConfig in place of net.ListenConfig:
//
//	d := autobuf.Dialer{Config: autobuf.Config{Path: autobuf.Path{Bps: 1e9, RTT: 100 * time.Millisecond}}}
//	conn, err := d.DialContext(ctx, "tcp", "backup.example.net:9000")
//
// The connections are *net.TCPConn, so sendfile and splice go on working and no byte
// passes through this package. What the path is need not be known: with the zero Config
// a connection that outgrows the system's automatic buffers is noticed from the kernel's
// own account (TCP_INFO) and given more while it runs.
//
// What is gained over net.Dialer, and that nothing is lost where the automatic buffers are
// enough, is measured by TestBankAutobuf in bench; docs/benchmarks.md has the figures.
package autobuf

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// Path is what connections have to fill. The zero Path is learnt from each connection.
type Path struct {
	// Bps is the rate of the path's narrowest link in bit/s.
	Bps float64
	// RTT is the least round-trip time.
	RTT time.Duration
}

// Window is the bandwidth-delay product in bytes and a quarter more, for jitter and for
// acknowledgements that come in bunches; 0 when the path is not stated.
func (p Path) Window() int {
	w := 1.25 * p.Bps / 8 * p.RTT.Seconds()
	if !(w > 0) {
		return 0
	}
	return int(min(w, math.MaxInt32/2))
}

// Config says how connections are sized. The zero Config learns each path and asks for
// no more than any program may.
type Config struct {
	Path Path
	// Budget bounds the buffers of all connections that share it; nil is no bound.
	Budget *Budget
	// Force passes the system's ceilings on SO_SNDBUF and SO_RCVBUF. Linux only, needs
	// CAP_NET_ADMIN; without it the ceilings hold.
	Force bool
	// Unsent is how long data may wait unsent in a send buffer at the connection's
	// present rate (TCP_NOTSENT_LOWAT; Linux and macOS): it keeps a large buffer from
	// becoming a queue that new data stands behind. 0 is 50 ms, below 0 no bound.
	Unsent time.Duration
	// Logger, when not nil, is told at level Debug of every change to a connection.
	Logger *slog.Logger
}

// Dialer connects as net.Dialer does, with buffers that fit the path. Its connections
// have to be closed: one that is only forgotten is not found by the garbage collector
// while it is looked after.
type Dialer struct {
	Config
	// Net is the dialer underneath. Its Control functions are called after autobuf's.
	Net net.Dialer
}

// ErrBudget is answered when a Budget has not enough left for another connection.
var ErrBudget = errors.New("autobuf: the memory budget is used up")

// Dial connects with a background context.
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialContext connects to the address. On a TCP network the connection is a
// *net.TCPConn; others are net.Dialer's business alone.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if !strings.HasPrefix(network, "tcp") {
		return d.Net.DialContext(ctx, network, address)
	}
	t, err := d.Config.plan()
	if err != nil {
		return nil, err
	}
	n := d.Net
	before := d.Net.ControlContext
	plain := d.Net.Control
	n.ControlContext = func(ctx context.Context, network, address string, c syscall.RawConn) error {
		t.prepare(c)
		switch {
		case before != nil:
			return before(ctx, network, address, c)
		case plain != nil:
			return plain(network, address, c)
		}
		return nil
	}
	conn, err := n.DialContext(ctx, network, address)
	if err != nil {
		t.release()
		return nil, err
	}
	t.follow(conn)
	return conn, nil
}

// ListenConfig listens as net.ListenConfig does, with buffers that fit the path.
type ListenConfig struct {
	Config
	// Net is the configuration underneath. Its Control function is called after
	// autobuf's.
	Net net.ListenConfig
}

// Listen listens on the address. The window scale of the connections is settled by the
// listener, so a receive buffer beyond the system's automatic sizing needs a stated
// Path. Multipath TCP is off. Connections that the Budget has no room for are closed
// as they are accepted, and Accept answers ErrBudget as a temporary error.
func (lc *ListenConfig) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	if !strings.HasPrefix(network, "tcp") {
		return lc.Net.Listen(ctx, network, address)
	}
	n := lc.Net
	n.SetMultipathTCP(false)
	n.Control = func(network, address string, c syscall.RawConn) error {
		// What a listener has, its connections inherit; they are charged when accepted.
		unbounded := lc.Config
		unbounded.Budget = nil
		if t, err := unbounded.plan(); err == nil {
			t.prepare(c)
		}
		if lc.Net.Control != nil {
			return lc.Net.Control(network, address, c)
		}
		return nil
	}
	l, err := n.Listen(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &listener{l, lc.Config}, nil
}

type listener struct {
	net.Listener
	cfg Config
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	t, err := l.cfg.plan()
	if err != nil {
		conn.Close()
		return nil, &net.OpError{Op: "accept", Net: "tcp", Source: l.Addr(), Addr: conn.RemoteAddr(), Err: refused{err}}
	}
	if raw, err := rawConn(conn); err == nil {
		t.prepare(raw)
	}
	t.follow(conn)
	return conn, nil
}

// refused is a connection that was not taken; servers go on accepting after it.
type refused struct{ error }

func (refused) Timeout() bool   { return false }
func (refused) Temporary() bool { return true }
func (r refused) Unwrap() error { return r.error }

func rawConn(c net.Conn) (syscall.RawConn, error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return sc.SyscallConn()
}

// plan decides on a connection's buffers before it is there, and charges the budget.
func (cfg Config) plan() (*tuner, error) {
	limits, err := socket.ReadCeilings()
	t := &tuner{cfg: cfg, limits: limits, known: err == nil}
	if !t.known {
		return t, nil // nothing is known of this system's sizing: it is left alone
	}
	if cfg.Force {
		t.limits.Send = forced
		t.limits.Receive = forced
	}
	window := cfg.Path.Window()
	t.send = half{granted: t.limits.AutoSend, fixed: fixed(window, t.limits.AutoSend, t.limits.Send, t.limits.Factor)}
	t.receive = half{granted: t.limits.AutoReceive, fixed: fixed(window, t.limits.AutoReceive, t.limits.Receive,
		t.limits.Factor)}
	if err := t.charge(); err != nil {
		return nil, err
	}
	return t, nil
}
