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
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// busyPatience is how long a busy server is asked again: it takes one test at a time
// and needs a moment between two.
const (
	busyPatience = 3 * time.Second
	busyPause    = 200 * time.Millisecond
)

// Peer measures with an iperf3 server at the far end. Its system cannot be seen beyond
// what it counts: a Result's Far is nil when it received, and holds only its congestion
// control and buffer when it sent.
type Peer struct {
	// Address is the server's HOST:PORT.
	Address string
	// Ticket, when not zero, is the cookie that opens a test there; a server that is not
	// open to everybody gave it out.
	Ticket Cookie
	// Route is the way that everything to the server takes.
	Route socket.Route

	helloTimeout time.Duration // the wait for the first UDP reply; 0: 5 s

	ctx   context.Context // ends with Close
	close context.CancelFunc
	// reached is set once the server was there: then its port may be closed for a moment
	// between two tests.
	reached atomic.Bool

	// mu guards what follows.
	mu sync.Mutex
	// begun is a control connection on which the server already waits for parameters.
	begun  net.Conn
	cookie Cookie
	// learned are refusals of the far end, by what was asked.
	learned map[request]*transfer.Unsupported
}

// request is a part of a Spec that far ends are known to refuse.
type request struct {
	window, mss int
	congestion  string
}

func requestOf(spec transfer.Spec) request {
	return request{max(spec.Far.SendBuffer, spec.Far.ReceiveBuffer), spec.Far.MSS, spec.Far.Congestion}
}

// NewPeer describes the server at address; it connects when a transfer runs.
func NewPeer(address string) *Peer {
	p := &Peer{Address: address, learned: map[request]*transfer.Unsupported{}}
	p.ctx, p.close = context.WithCancel(context.Background())
	return p
}

// Adopt gives the peer a control connection on which the server has taken cookie and
// answered PARAM_EXCHANGE; the next transfer uses it.
func (p *Peer) Adopt(conn net.Conn, cookie Cookie) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = conn
	p.cookie = cookie
	p.reached.Store(true)
}

// Check answers *transfer.Unsupported for what the protocol cannot say and for what
// this far end has already refused.
func (p *Peer) Check(t transfer.Test) error {
	tcp, udp, err := t.Specs()
	if err != nil {
		return err
	}
	if len(udp) > 0 {
		return CheckDatagrams(p.Ticket != Cookie{}, udp...)
	}
	for _, spec := range tcp {
		if err := check(spec); err != nil {
			return err
		}
		p.mu.Lock()
		refused, ok := p.learned[requestOf(spec)]
		p.mu.Unlock()
		if ok {
			return refused
		}
	}
	if len(tcp) == 2 {
		return together(tcp[0], tcp[1])
	}
	return nil
}

// Run implements transfer.Peer; two legs are iperf3's --bidir, which servers know since
// 3.7. A refusal by the far end that concerns one field of a Spec comes back as
// *transfer.Unsupported.
func (p *Peer) Run(ctx context.Context, t transfer.Test, each func(transfer.Interval)) ([]transfer.Outcome, error) {
	if err := p.Check(t); err != nil {
		return nil, err
	}
	ctx, cancel := p.bound(ctx)
	defer cancel()
	outcomes, err := p.run(ctx, t, each)
	tcp := t.Legs[0].TCP
	if tcp == nil {
		return outcomes, err
	}
	var refused *transfer.Unsupported
	// A server that does not know --bidir hangs up too: that says nothing of one leg.
	if err = explain(*tcp, err); errors.As(err, &refused) && len(t.Legs) == 1 {
		p.mu.Lock()
		p.learned[requestOf(*tcp)] = refused
		p.mu.Unlock()
	}
	return outcomes, err
}

// bound makes a context that also ends with Close.
func (p *Peer) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.ctx, func() { cancel(errors.New("closed")) })
	return ctx, func() { stop(); cancel(nil) }
}

func (p *Peer) run(ctx context.Context, t transfer.Test,
	each func(transfer.Interval)) (outcomes []transfer.Outcome, err error) {
	c, cookie, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer c.conn.Close()
	if t.Legs[0].TCP == nil || !t.Legs[0].TCP.Latency {
		return p.test(ctx, c, cookie, t, each)
	}
	// A server takes a connection for another test, so ICMP is all that can be tried.
	to := socket.AddrPort(c.conn.RemoteAddr())
	latency, why, err := path.Beside(ctx, to, path.Config{Route: p.Route, OnlyICMP: true},
		func() (err error) {
			outcomes, err = p.test(ctx, c, cookie, t, each)
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

// test carries out one test on a control connection whose cookie was taken.
func (p *Peer) test(ctx context.Context, c *control, cookie Cookie, t transfer.Test,
	each func(transfer.Interval)) ([]transfer.Outcome, error) {
	tcp, udp, err := t.Specs()
	if err != nil {
		return nil, err
	}
	wire := paramsOf(tcp, udp)
	wire.Marked = wire.UDP && p.Ticket != Cookie{} // a fullpipe gave it out
	var halves []half
	if len(udp) > 0 {
		halves, _, err = p.openFlows(ctx, c, wire, udp, 0)
	} else {
		near := tcp[0].Near
		if len(tcp) == 2 {
			near.ReceiveBuffer = tcp[1].Near.ReceiveBuffer
			near.Clamp = tcp[1].Near.Clamp
		}
		halves, _, err = p.openLoads(ctx, c, cookie, wire, near, tcp, 0)
	}
	if err != nil {
		return nil, err
	}
	defer closeHalves(halves)
	done, err := c.carry(ctx, halves, wire.Streams, each)
	if err == nil && len(tcp) > 0 {
		err = kept(tcp[len(tcp)-1], done.far)
	}
	return done.outcomes, err
}

// paramsOf asks for one leg or, with --bidir, for two.
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

// kept finds out whether a server that says nothing did as it was asked.
func kept(spec transfer.Spec, far Results) error {
	if asked := spec.Far.Congestion; asked != "" && far.Congestion != "" && far.Congestion != asked {
		return &transfer.Unsupported{Field: "Far.Congestion", Why: "the far end used " + far.Congestion + " instead of " +
			asked}
	}
	return nil
}

// begin opens the control connection and sends the cookie; a busy server is asked again
// for a while.
func (p *Peer) begin(ctx context.Context) (*control, Cookie, error) {
	p.mu.Lock()
	begun := p.begun
	cookie := p.cookie
	p.begun = nil
	p.mu.Unlock()
	if begun != nil {
		return &control{conn: begun}, cookie, nil
	}
	for started := time.Now(); ; {
		c, cookie, err := p.greet(ctx)
		busy := errors.Is(err, ErrBusy) || errors.Is(err, syscall.ECONNRESET) || p.reached.Load() &&
			errors.Is(err, syscall.ECONNREFUSED)
		if err == nil || !busy || time.Since(started) > busyPatience {
			return c, cookie, err
		}
		select {
		case <-time.After(busyPause):
		case <-ctx.Done():
			return nil, cookie, context.Cause(ctx)
		}
	}
}

func (p *Peer) greet(ctx context.Context) (*control, Cookie, error) {
	cookie := p.Ticket
	if cookie == (Cookie{}) {
		cookie = NewCookie()
	}
	conn, err := dial(ctx, p.Address, socket.Options{Route: p.Route})
	if err != nil {
		return nil, cookie, &unreachable{p.Address, err}
	}
	p.reached.Store(true)
	c := &control{conn: conn}
	if _, err = conn.Write(cookie[:]); err == nil {
		_, err = c.expect(ctx, answerTimeout, ParamExchange)
	} else {
		err = c.because(ctx, err, "sending the cookie")
	}
	if err != nil {
		conn.Close()
		return nil, cookie, err
	}
	return c, cookie, nil
}

// dial gives the first connection of a test, and each other one, a bounded time.
func dial(ctx context.Context, address string, o socket.Options) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return socket.Dial(ctx, address, o)
}

// Close ends a running transfer and what was begun.
func (p *Peer) Close() error {
	p.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun != nil {
		(&control{conn: p.begun}).hangUp()
		p.begun.Close()
		p.begun = nil
	}
	return nil
}
