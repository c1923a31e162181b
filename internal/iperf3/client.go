package iperf3

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// A busy server is retried: it runs one test at a time and needs a moment between two.
const (
	busyTimeout       = 3 * time.Second
	busyRetryInterval = 200 * time.Millisecond
)

// Peer measures with an iperf3 server at the far end. Result.Far is nil when the server received. When it sent,
// Far has only its congestion control and buffer.
type Peer struct {
	// Address is the server's HOST:PORT.
	Address string
	// Ticket, when not zero, is the cookie for each test. Servers that require authentication issue it.
	Ticket Cookie
	// Route is the route of all connections to the server.
	Route socket.Route

	helloTimeout time.Duration // the wait for the first UDP reply; 0: 5 s

	ctx   context.Context // ends with Close
	close context.CancelFunc
	// wasReached is set after the first connection. From then on a closed port counts as busy.
	wasReached atomic.Bool

	// mu guards the fields below.
	mu sync.Mutex
	// adopted is a control connection on which the server waits for parameters.
	adopted       net.Conn
	adoptedCookie Cookie
	// refusals are the far end's earlier refusals.
	refusals map[refusalKey]*transfer.Unsupported
}

// refusalKey has the fields of a Spec that servers are known to refuse.
type refusalKey struct {
	window, mss int
	congestion  string
}

func refusalKeyOf(spec transfer.Spec) refusalKey {
	return refusalKey{max(spec.Far.SendBuffer, spec.Far.ReceiveBuffer), spec.Far.MSS, spec.Far.Congestion}
}

// NewPeer returns a Peer for the server at address. It connects when a transfer runs.
func NewPeer(address string) *Peer {
	p := &Peer{Address: address, refusals: map[refusalKey]*transfer.Unsupported{}}
	p.ctx, p.close = context.WithCancel(context.Background())
	return p
}

// Adopt gives the peer a control connection on which the server accepted cookie and sent PARAM_EXCHANGE. The next
// transfer uses it.
func (p *Peer) Adopt(conn net.Conn, cookie Cookie) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.adopted = conn
	p.adoptedCookie = cookie
	p.wasReached.Store(true)
}

// Check returns *transfer.Unsupported for tests that the protocol does not support and for tests that this server
// refused earlier.
func (p *Peer) Check(t transfer.Test) error {
	tcp, udp, err := t.Specs()
	if err != nil {
		return err
	}
	if len(udp) > 0 {
		return CheckDatagrams(p.Ticket != Cookie{}, udp...)
	}
	for _, spec := range tcp {
		if err := checkSpec(spec); err != nil {
			return err
		}
		p.mu.Lock()
		refused, ok := p.refusals[refusalKeyOf(spec)]
		p.mu.Unlock()
		if ok {
			return refused
		}
	}
	if len(tcp) == 2 {
		return checkBidir(tcp[0], tcp[1])
	}
	return nil
}

// Run implements transfer.Peer. Two legs use --bidir, which servers support since 3.7. It returns
// *transfer.Unsupported if the server refuses one field of a Spec.
func (p *Peer) Run(ctx context.Context, t transfer.Test,
	onInterval func(transfer.Interval)) ([]transfer.Outcome, error) {
	if err := p.Check(t); err != nil {
		return nil, err
	}
	ctx, cancel := p.untilClosed(ctx)
	defer cancel()
	outcomes, err := p.run(ctx, t, onInterval)
	tcp := t.Legs[0].TCP
	if tcp == nil {
		return outcomes, err
	}
	var refused *transfer.Unsupported
	// Servers without --bidir hang up too, so such a failure blames no single leg.
	err = refusedField(*tcp, err)
	if errors.As(err, &refused) && len(t.Legs) == 1 {
		p.mu.Lock()
		p.refusals[refusalKeyOf(*tcp)] = refused
		p.mu.Unlock()
	}
	return outcomes, err
}

// untilClosed returns a context that also ends with Close.
func (p *Peer) untilClosed(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.ctx, func() { cancel(errors.New("closed")) })
	return ctx, func() { stop(); cancel(nil) }
}

func (p *Peer) run(ctx context.Context, t transfer.Test,
	onInterval func(transfer.Interval)) ([]transfer.Outcome, error) {
	c, cookie, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.conn.Close()
	run := func() ([]transfer.Outcome, error) { return p.runTest(ctx, c, cookie, t, onInterval) }
	if t.Legs[0].TCP == nil || !t.Legs[0].TCP.Latency {
		return run()
	}
	return p.underLoad(ctx, c, run)
}

// underLoad runs a TCP test, and measures the latency before and during it. The server would take a TCP probe for
// another test, so only ICMP does.
func (p *Peer) underLoad(ctx context.Context, c *control,
	run func() ([]transfer.Outcome, error)) (outcomes []transfer.Outcome, err error) {
	to := socket.AddrPort(c.conn.RemoteAddr())
	latency, why, err := path.UnderLoad(ctx, to, path.Config{Route: p.Route, OnlyICMP: true}, func() (err error) {
		outcomes, err = run()
		return err
	})
	for _, o := range outcomes {
		if why != "" {
			o.TCP.Warnings = append(o.TCP.Warnings, why)
		} else {
			o.TCP.Latency = latency
		}
	}
	return outcomes, err
}

// runTest runs one test on a control connection whose cookie the server accepted.
func (p *Peer) runTest(ctx context.Context, c *control, cookie Cookie, t transfer.Test,
	onInterval func(transfer.Interval)) ([]transfer.Outcome, error) {
	tcp, udp, err := t.Specs()
	if err != nil {
		return nil, err
	}
	wire := paramsOf(tcp, udp)
	wire.Marked = wire.UDP && p.Ticket != Cookie{} // only fullpipe servers issue tickets
	var directions []direction
	if len(udp) > 0 {
		directions, _, err = p.openUDP(ctx, c, wire, udp, 0)
	} else {
		near := tcp[0].Near
		if len(tcp) == 2 {
			near.ReceiveBuffer = tcp[1].Near.ReceiveBuffer
			near.Clamp = tcp[1].Near.Clamp
		}
		directions, _, err = p.openTCP(ctx, c, cookie, wire, near, tcp, 0)
	}
	if err != nil {
		return nil, err
	}
	defer closeDirections(directions)
	done, err := c.runData(ctx, directions, wire.Streams, onInterval)
	if err == nil && len(tcp) > 0 {
		err = checkCongestion(tcp[len(tcp)-1], done.far)
	}
	return done.outcomes, err
}

// paramsOf returns the parameters for one leg or, with --bidir, for two.
func paramsOf(tcp []transfer.Spec, udp []transfer.DatagramSpec) (p Params) {
	if len(udp) > 0 {
		p = datagramParams(udp[0])
	} else {
		p = params(tcp[len(tcp)-1])
	}
	if len(tcp)+len(udp) == 2 {
		p.Reverse = false
		p.Both = true
	}
	return p
}

// checkCongestion returns an error if the server used another congestion control than requested.
func checkCongestion(spec transfer.Spec, far Results) error {
	if asked := spec.Far.Congestion; asked != "" && far.Congestion != "" && far.Congestion != asked {
		return &transfer.Unsupported{Field: "Far.Congestion", Reason: "the far end used " + far.Congestion + " instead of " +
			asked}
	}
	return nil
}

// connect opens the control connection and sends the cookie. It retries while the server is busy.
func (p *Peer) connect(ctx context.Context) (*control, Cookie, error) {
	p.mu.Lock()
	begun := p.adopted
	cookie := p.adoptedCookie
	p.adopted = nil
	p.mu.Unlock()
	if begun != nil {
		return &control{conn: begun}, cookie, nil
	}
	for started := time.Now(); ; {
		c, cookie, err := p.connectOnce(ctx)
		busy := errors.Is(err, ErrBusy) || errors.Is(err, syscall.ECONNRESET) || p.wasReached.Load() &&
			errors.Is(err, syscall.ECONNREFUSED)
		if err == nil || !busy || time.Since(started) > busyTimeout {
			return c, cookie, err
		}
		select {
		case <-time.After(busyRetryInterval):
		case <-ctx.Done():
			return nil, cookie, context.Cause(ctx)
		}
	}
}

func (p *Peer) connectOnce(ctx context.Context) (*control, Cookie, error) {
	cookie := p.Ticket
	if cookie == (Cookie{}) {
		cookie = NewCookie()
	}
	conn, err := dial(ctx, p.Address, socket.Options{Route: p.Route})
	if err != nil {
		return nil, cookie, &probe.NoServerError{Program: "iperf3", Address: p.Address, Timeout: answerTimeout,
			Err: err, Start: "start iperf3 -s there, or give its port as iperf3://HOST:PORT"}
	}
	p.wasReached.Store(true)
	c := &control{conn: conn}
	_, err = conn.Write(cookie[:])
	if err == nil {
		_, err = c.expect(ctx, answerTimeout, ParamExchange)
	} else {
		err = c.explainError(ctx, err, "sending the cookie")
	}
	if err != nil {
		conn.Close()
		return nil, cookie, err
	}
	return c, cookie, nil
}

// dial connects within answerTimeout.
func dial(ctx context.Context, address string, o socket.Options) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return socket.Dial(ctx, address, o)
}

// Close ends a running transfer and closes an adopted connection.
func (p *Peer) Close() error {
	p.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.adopted != nil {
		(&control{conn: p.adopted}).hangUp()
		p.adopted.Close()
		p.adopted = nil
	}
	return nil
}
