// Package autobuf gives a program's TCP connections the buffers that their paths need.
//
// A TCP connection fills its path only with a bandwidth-delay product of data in flight. The sender's send buffer and
// the receiver's receive buffer limit that. Systems size both automatically up to a maximum, which is enough for most
// paths: autobuf then changes nothing. For a path that needs more, autobuf sets SO_SNDBUF and SO_RCVBUF up to the
// system's limits (Linux: net.core.wmem_max and rmem_max): before connect or listen for a stated path, otherwise while
// the connection runs.
//
// Use a Dialer in place of net.Dialer and a ListenConfig in place of net.ListenConfig:
//
//	d := autobuf.Dialer{Config: autobuf.Config{Path: autobuf.Path{Bps: 1e9, RTT: 100 * time.Millisecond}}}
//	conn, err := d.DialContext(ctx, "tcp", "backup.example.net:9000")
//
// The connections are *net.TCPConn: sendfile and splice work, and no byte passes through this package. The path need
// not be known. With the zero Config, autobuf reads TCP_INFO and enlarges the buffers of connections that need more
// than the automatic ones.
//
// TestBankAutobuf in bench measures the gain over net.Dialer, and checks that nothing is lost on paths for which
// automatic buffers are enough. docs/benchmarks.md has the figures.
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

// Path is the path that connections have to fill. autobuf estimates the zero Path from each connection.
type Path struct {
	// Bps is the bottleneck's rate in bit/s.
	Bps float64
	// RTT is the minimum round-trip time.
	RTT time.Duration
}

// Window returns 1.25 times the bandwidth-delay product in bytes, because of jitter and aggregated ACKs. It is 0 if the
// path is not stated.
func (p Path) Window() int {
	w := 1.25 * p.Bps / 8 * p.RTT.Seconds()
	if !(w > 0) {
		return 0
	}
	return int(min(w, math.MaxInt32/2))
}

// Config sets the sizing of buffers. The zero Config estimates each path and needs no privilege.
type Config struct {
	Path Path
	// Budget limits the buffers of all connections that share it; nil is no limit.
	Budget *Budget
	// Force exceeds the system's limits of SO_SNDBUF and SO_RCVBUF. It needs Linux and CAP_NET_ADMIN; otherwise the
	// limits apply.
	Force bool
	// Unsent limits the unsent data in the send buffer to this time at the connection's rate (TCP_NOTSENT_LOWAT; Linux
	// and macOS). It prevents a long queue in a large buffer. 0 is 50 ms, a negative value no limit.
	Unsent time.Duration
	// Logger, if not nil, receives every change of a connection at level Debug.
	Logger *slog.Logger
}

// Dialer connects as net.Dialer does, with buffers that fit the path. Its connections must be closed: while autobuf
// follows one, the garbage collector does not collect it.
type Dialer struct {
	Config
	// Net is the underlying dialer. Its Control functions are called after autobuf's.
	Net net.Dialer
}

// ErrBudget is the error of a connection for which a Budget has too little left.
var ErrBudget = errors.New("autobuf: the memory budget is used up")

// Dial connects with a background context.
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialContext connects to the address. On a TCP network the connection is a *net.TCPConn; net.Dialer alone handles
// other networks.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if !strings.HasPrefix(network, "tcp") {
		return d.Net.DialContext(ctx, network, address)
	}
	t, err := d.Config.plan()
	if err != nil {
		return nil, err
	}
	n := d.Net
	controlContext := d.Net.ControlContext
	control := d.Net.Control
	n.ControlContext = func(ctx context.Context, network, address string, c syscall.RawConn) error {
		t.prepare(c)
		switch {
		case controlContext != nil:
			return controlContext(ctx, network, address, c)
		case control != nil:
			return control(network, address, c)
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
	// Net is the underlying configuration. Its Control function is called after autobuf's.
	Net net.ListenConfig
}

// Listen listens on the address. The listener fixes the window scale of its connections, so a receive buffer larger
// than the automatic one needs a stated Path. Multipath TCP is off. If the Budget has too little left for a connection,
// Accept closes it and returns ErrBudget as a temporary error.
func (lc *ListenConfig) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	if !strings.HasPrefix(network, "tcp") {
		return lc.Net.Listen(ctx, network, address)
	}
	n := lc.Net
	n.SetMultipathTCP(false)
	n.Control = func(network, address string, c syscall.RawConn) error {
		// Connections inherit the listener's buffers; the budget is charged when they are accepted.
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

// refused is the error of a connection that was not accepted. It is temporary, so that servers continue to accept.
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

// plan returns the buffers of a new connection, and charges the budget.
func (cfg Config) plan() (*tuner, error) {
	limits, err := socket.ReadCeilings()
	t := &tuner{cfg: cfg, limits: limits, known: err == nil}
	if !t.known {
		return t, nil // this system's automatic sizing is unknown: change nothing
	}
	if cfg.Force {
		t.limits.Send = forcedMax
		t.limits.Receive = forcedMax
	}
	window := cfg.Path.Window()
	t.send = buffer{granted: t.limits.AutoSend, fixed: fixedSize(window, t.limits.AutoSend, t.limits.Send,
		t.limits.Factor)}
	t.receive = buffer{granted: t.limits.AutoReceive, fixed: fixedSize(window, t.limits.AutoReceive, t.limits.Receive,
		t.limits.Factor)}
	if err := t.charge(); err != nil {
		return nil, err
	}
	return t, nil
}
