package iperf3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
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
	p.begun, p.cookie = conn, cookie
	p.reached.Store(true)
}

// Check answers *transfer.Unsupported for what the protocol cannot say and for what
// this far end has already refused.
func (p *Peer) Check(spec transfer.Spec) error {
	if err := check(spec); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if refused, ok := p.learned[requestOf(spec)]; ok {
		return refused
	}
	return nil
}

// Run carries out one transfer. A refusal by the far end that concerns one field of the
// Spec comes back as *transfer.Unsupported.
func (p *Peer) Run(ctx context.Context, spec transfer.Spec, each func(transfer.Interval)) (*transfer.Result, error) {
	if err := p.Check(spec); err != nil {
		return nil, err
	}
	ctx, cancel := p.bound(ctx)
	defer cancel()
	result, err := p.run(ctx, spec, each)
	var refused *transfer.Unsupported
	if err = explain(spec, err); errors.As(err, &refused) {
		p.mu.Lock()
		p.learned[requestOf(spec)] = refused
		p.mu.Unlock()
	}
	return result, err
}

// bound makes a context that also ends with Close.
func (p *Peer) bound(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.ctx, func() { cancel(errors.New("closed")) })
	return ctx, func() { stop(); cancel(nil) }
}

func (p *Peer) run(ctx context.Context, spec transfer.Spec, each func(transfer.Interval)) (result *transfer.Result, err error) {
	c, cookie, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer c.conn.Close()
	latency, notes, err := p.beside(ctx, c, spec, func() (err error) {
		result, err = p.test(ctx, c, cookie, spec, each)
		return err
	})
	if result != nil {
		result.Latency, result.Warnings = latency, append(result.Warnings, notes...)
	}
	return result, err
}

// beside measures latency beside a test where the Spec asks for it. A server takes a
// connection for another test, so ICMP is all that can be tried.
func (p *Peer) beside(ctx context.Context, c *control, spec transfer.Spec, test func() error) (*transfer.Latency, []string, error) {
	if !spec.Latency {
		return nil, nil, test()
	}
	latency, why, err := path.Beside(ctx, addrPort(c.conn.RemoteAddr()), path.Config{Route: p.Route, OnlyICMP: true}, test)
	if why != "" {
		return nil, []string{why}, err
	}
	return latency, nil, err
}

// test carries out one test on a control connection whose cookie was taken.
func (p *Peer) test(ctx context.Context, c *control, cookie Cookie, spec transfer.Spec, each func(transfer.Interval)) (*transfer.Result, error) {
	wire := params(spec)
	conns, err := open(ctx, c, cookie, wire, socket.Options{Socket: spec.Near, Route: p.Route})
	if err != nil {
		return nil, err
	}
	result := &transfer.Result{Spec: spec, Started: time.Now()}
	load, err := newLoad(conns, spec)
	if err != nil {
		c.send(ctx, ClientTerminate)
		return nil, err
	}
	defer load.close()
	usage := startUsage()
	err = c.during(ctx, func(ctx context.Context) error { return load.run(ctx, each) })
	if result.Near = load.end; result.Near != nil && load.sends() {
		asAcknowledged(result.Near)
	}
	if err != nil {
		c.hangUp()
		return result, err
	}
	far, err := c.finish(ctx, resultsOf(usage, load))
	if err != nil {
		return result, err
	}
	result.Complete = true
	tell(result, far)
	return result, kept(spec, far)
}

// kept finds out whether a server that says nothing did as it was asked.
func kept(spec transfer.Spec, far Results) error {
	if asked := spec.Far.Congestion; asked != "" && far.Congestion != "" && far.Congestion != asked {
		return &transfer.Unsupported{Field: "Far.Congestion", Why: "the far end used " + far.Congestion + " instead of " + asked}
	}
	return nil
}

// begin opens the control connection and sends the cookie; a busy server is asked again
// for a while.
func (p *Peer) begin(ctx context.Context) (*control, Cookie, error) {
	p.mu.Lock()
	begun, cookie := p.begun, p.cookie
	p.begun = nil
	p.mu.Unlock()
	if begun != nil {
		return &control{conn: begun}, cookie, nil
	}
	for started := time.Now(); ; {
		c, cookie, err := p.greet(ctx)
		busy := errors.Is(err, ErrBusy) || errors.Is(err, syscall.ECONNRESET) || p.reached.Load() && errors.Is(err, syscall.ECONNREFUSED)
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

// open sends the parameters and opens the streams, one after the other, because the
// server numbers them as it accepts them.
func open(ctx context.Context, c *control, cookie Cookie, wire Params, o socket.Options) (conns []*net.TCPConn, err error) {
	defer func() {
		if err != nil {
			closeAll(conns)
			conns = nil
		}
	}()
	if err = c.ask(ctx, wire); err != nil {
		return
	}
	n := wire.Streams
	if wire.Both {
		n *= 2
	}
	for len(conns) < n {
		conn, err := dial(ctx, c.conn.RemoteAddr().String(), o)
		if err != nil {
			return conns, fmt.Errorf("stream %d: %w", len(conns)+1, err)
		}
		conns = append(conns, conn)
		if _, err = conn.Write(cookie[:]); err != nil {
			return conns, fmt.Errorf("stream %d: %w", len(conns), err)
		}
	}
	return conns, c.awaitStart(ctx, wire)
}

// ask sends the parameters and waits until streams may be opened.
func (c *control) ask(ctx context.Context, wire Params) error {
	if err := c.sendFrame(ctx, wire, "the parameters"); err != nil {
		return err
	}
	_, err := c.expect(ctx, answerTimeout, CreateStreams)
	return err
}

// awaitStart waits until the server has all streams and says go.
func (c *control) awaitStart(ctx context.Context, wire Params) error {
	if _, err := c.expect(ctx, answerTimeout, TestStart); err != nil {
		if wire.Both {
			err = fmt.Errorf("both directions at once, which iperf3 knows since 3.7: %w", err)
		}
		return err
	}
	_, err := c.expect(ctx, answerTimeout, TestRunning)
	return err
}

func closeAll(conns []*net.TCPConn) {
	for _, c := range conns {
		c.Close()
	}
}

// during runs a test's data while it listens to what the server says meanwhile: nothing,
// unless something went wrong there.
func (c *control) during(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		if _, err := c.expect(ctx, 366*24*time.Hour, 0); ctx.Err() == nil {
			cancel(err)
		}
	}()
	err := run(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	cancel(nil)
	<-heard
	c.conn.SetDeadline(time.Time{})
	return err
}

// finish ends a test: results are exchanged and the far end's come back.
func (c *control) finish(ctx context.Context, mine Results) (far Results, err error) {
	if err = c.send(ctx, TestEnd); err != nil {
		return
	}
	if _, err = c.expect(ctx, resultTimeout, ExchangeResults); err != nil {
		return
	}
	if err = c.sendFrame(ctx, mine, "the results"); err != nil {
		return
	}
	text, err := c.readFrame(ctx, resultTimeout, MaxServerResults, "the far end's results")
	if err != nil {
		return
	}
	if far, err = ParseResults(text); err != nil {
		return far, fmt.Errorf("the far end's results: %w", err)
	}
	if _, err = c.expect(ctx, resultTimeout, DisplayResults); err != nil {
		return
	}
	return far, c.send(ctx, Done)
}

// hangUp tells the server that this client stops; nobody waits for an answer.
func (c *control) hangUp() {
	c.conn.SetDeadline(time.Now().Add(goodbyeTime))
	WriteState(c.conn, ClientTerminate)
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

// asAcknowledged times each stream by its acknowledgements, because nobody tells when the
// bytes arrived: from when the first could be acknowledged until the last one was.
func asAcknowledged(near *transfer.End) {
	for i := range near.Streams {
		s := &near.Streams[i]
		var acked int64
		var rtt time.Duration
		for _, sample := range s.Samples {
			if sample.Have&transfer.HaveMinRTT != 0 {
				rtt = sample.MinRTT
			}
			if sample.Have&transfer.HaveAcked != 0 && sample.Acked > acked {
				acked, s.Last = sample.Acked, max(sample.At, s.First)
			}
		}
		if s.First+rtt < s.Last {
			s.First += rtt
		}
	}
}

// farCPU is what the far end says that it spent; nil where its Results say nothing.
func farCPU(r *transfer.Result, far Results) *transfer.CPU {
	if r.Near == nil || r.Near.CPU == nil {
		return nil
	}
	return toldCPU(far, r.Near.CPU.Wall)
}

// toldCPU is the same over the time that this end counted.
func toldCPU(far Results, wall time.Duration) *transfer.CPU {
	if far.CPUTotal <= 0 {
		return nil
	}
	return &transfer.CPU{Wall: wall, Process: time.Duration(min(far.CPUTotal, mostCPU) / 100 * float64(wall))}
}

// mostCPU is as many percent of a core as are believed: 1024 of them.
const mostCPU = 1024 * 100

// tell adds what the far end counted to a result. A far end that received stays unseen:
// its count is only compared with ours.
func tell(r *transfer.Result, far Results) {
	var bytes, retransmits int64
	for _, s := range far.Streams {
		bytes += s.Bytes
		retransmits += max(s.Retransmits, 0)
	}
	if r.Spec.Direction == transfer.Up {
		r.FarCPU = farCPU(r, far)
		if span, ok := r.Received(); ok && (bytes < span.Bytes*98/100 || bytes > span.Bytes*102/100) {
			r.Warnings = append(r.Warnings, fmt.Sprintf("the far iperf3 counted %s, its system acknowledged %s",
				units.Size(bytes), units.Size(span.Bytes)))
		}
		return
	}
	r.Far = &transfer.End{CPU: farCPU(r, far)}
	for _, s := range r.Near.Streams {
		r.Far.Streams = append(r.Far.Streams, transfer.Stream{Local: s.Remote, Remote: s.Local, Congestion: far.Congestion,
			SendBuffer: transfer.Buffer{Requested: r.Spec.Far.SendBuffer}})
	}
	if far.SenderHasRetransmits == 1 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the far iperf3 counted %d retransmitted segments", retransmits))
	}
}
