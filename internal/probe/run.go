package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/engine"
	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// besideICMP measures latency with a server that does not know echoes yet.
func (r *run) besideICMP(ctx context.Context) error {
	to, err := netip.ParseAddrPort(r.ctl.remote)
	if err != nil {
		return r.transfer(ctx)
	}
	var why string
	r.result.Latency, why, err = path.Beside(ctx, to, path.Config{Route: r.route, OnlyICMP: true},
		func() error { return r.transfer(ctx) })
	if why != "" {
		r.result.Warnings = append(r.result.Warnings, why)
	}
	return err
}

// run is one transfer of a Client.
type run struct {
	ctl      *control
	route    socket.Route
	spec     transfer.Spec
	each     func(transfer.Interval)
	result   *transfer.Result
	answered bool // the far end's part is over
	ports    []uint16
	echoes   *echoes // nil: none are asked
	begin    func()  // called when the idle path is known; may be nil
}

func (r *run) transfer(ctx context.Context) error {
	if r.spec.Latency && r.ctl.hello.Echo {
		r.echoes = &echoes{ctl: r.ctl, spec: r.spec, begun: time.Now()}
		if err := r.echoes.idle(ctx); err != nil {
			return fmt.Errorf("ask for an echo: %w", err)
		}
		defer func() { r.result.Latency, r.result.ClockDrift = r.echoes.result() }()
	}
	if r.begin != nil {
		r.begin()
	}
	answer, err := r.offer(ctx)
	if err != nil {
		return err
	}
	r.forgetPath()
	streams, err := r.connect(ctx, answer)
	defer func() { closeAll(streams) }()
	if err != nil {
		return err
	}

	moving, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	far := make(chan farEnd, 1)
	up := r.spec.Direction == transfer.Up
	var sending engine.Latest
	each := func(i transfer.Interval) {
		i.Sender = sending.Get()
		if r.each != nil {
			r.each(i)
		}
		if r.echoes != nil {
			r.echoes.moved.Add(i.Bytes)
		}
	}
	if r.echoes != nil {
		r.echoes.far = &sending
		asking, stop := context.WithCancel(moving)
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			r.echoes.run(asking)
		}()
		defer func() { stop(); <-asked }()
	}
	go func() {
		f := r.ctl.await(r.spec, each, r.echoes)
		if f.err != nil {
			cancel(f.err)
		}
		far <- f
	}()
	if r.spec.Time > 0 {
		late := time.AfterFunc(r.spec.Time+r.ctl.times.Answer, func() { cancel(engine.ErrStalled) })
		defer late.Stop()
	}
	p := engine.Endpoint{Send: up, Spec: r.spec, Streams: streams, Preface: PrefaceSize, Stall: r.ctl.times.Stall}
	if up {
		p.Latest = &sending
	}
	if !up {
		p.Each = each
	}
	var nearErr error
	r.result.Near, nearErr = p.Run(moving)
	if !up || nearErr != nil {
		closeAll(streams) // the sender learns that nobody reads any more
		streams = nil
	}
	return r.conclude(ctx, nearErr, far)
}

// conclude waits for the far end's result, which a failure or an interruption here
// hurries.
func (r *run) conclude(ctx context.Context, nearErr error, far <-chan farEnd) error {
	wait := r.ctl.times.Result
	hurried := false
	if nearErr != nil {
		r.ctl.send(kindStop, struct{}{})
		wait = r.ctl.times.Stop
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	var overdue <-chan time.Time // nothing may ever have reached the far end
	if nearErr == nil && r.spec.Time > 0 {
		t := time.NewTimer(r.ctl.times.Stop + 2*r.roundTrip())
		defer t.Stop()
		overdue = t.C
	}
	interrupted := ctx.Done()
	for {
		select {
		case f := <-far:
			r.answered = f.err == nil
			r.result.Far = f.result.End
			r.result.Warnings = append(r.result.Warnings, f.result.Warnings...)
			r.result.Warnings = append(r.result.Warnings, clippings("near", r.result.Near)...)
			r.result.Warnings = append(r.result.Warnings, clippings("far", r.result.Far)...)
			var farErr error
			// Servers from before Versions do not tell why they stopped.
			obeyed := hurried && (f.result.Stopped || r.ctl.hello.Versions == nil)
			if f.result.Error != "" && !obeyed {
				farErr = errors.New("the far end: " + f.result.Error)
			}
			if errors.Is(nearErr, f.err) { // the same failure seen twice
				f.err = nil
			}
			return errors.Join(nearErr, f.err, farErr)
		case <-overdue:
			hurried = true
			r.ctl.send(kindStop, struct{}{})
			late.Reset(r.ctl.times.Result)
		case <-interrupted:
			interrupted = nil
			r.ctl.send(kindStop, struct{}{})
			late.Reset(r.ctl.times.Stop)
		case <-late.C:
			if nearErr == nil {
				nearErr = fmt.Errorf("no result from the far end within %v of the transfer", wait)
			}
			r.ctl.close(nearErr)
			<-far
			return nearErr
		}
	}
}

// roundTrip is the last one that this end's kernel told of, 0 if none.
func (r *run) roundTrip() (rtt time.Duration) {
	if r.result.Near == nil {
		return 0
	}
	for _, s := range r.result.Near.Streams {
		if n := len(s.Samples); n > 0 {
			rtt = max(rtt, s.Samples[n-1].RTT)
		}
	}
	return rtt
}

func clippings(which string, e *transfer.End) []string {
	if e == nil || len(e.Streams) == 0 {
		return nil
	}
	var w []string
	for _, b := range []struct {
		name string
		transfer.Buffer
	}{{"send", e.Streams[0].SendBuffer}, {"receive", e.Streams[0].ReceiveBuffer}} {
		if b.Clipped {
			w = append(w, fmt.Sprintf("the %s end's system clipped the %s buffer: %d bytes asked, %d granted (Linux counts "+
				"double)",
				which, b.name, b.Requested, b.Granted))
		}
	}
	return w
}

func (r *run) offer(ctx context.Context) (accept, error) {
	var a accept
	o := offer{Version: r.ctl.version, Spec: r.spec, TestID: r.spec.TestID}
	if own, ok := r.ctl.conn.LocalAddr().(*net.TCPAddr); ok && r.spec.Far.ReceiveBuffer > 0 {
		at := own.AddrPort()
		if ports, err := socket.FreePorts(at.Addr(), max(r.spec.Streams, 1)); err == nil {
			o.Ports = ports
			o.From = at.Port()
			r.ports = ports
		}
	}
	if err := r.ctl.send(kindOffer, o); err != nil {
		return a, err
	}
	m, err := r.ctl.next(ctx, r.ctl.times.Answer)
	if err != nil {
		return a, fmt.Errorf("offer a transfer: %w", err)
	}
	if err := m.decode(kindAccept, &a); err != nil {
		return a, err
	}
	if err := transfer.BelieveNotes(append(a.Warnings, a.Field, a.Error)); err != nil {
		return a, err
	}
	r.result.Warnings = append(r.result.Warnings, a.Warnings...)
	switch {
	case a.Field != "":
		return a, &transfer.Unsupported{Field: a.Field, Why: a.Error}
	case a.Error != "":
		return a, errors.New("the far end: " + a.Error)
	}
	return a, a.check(max(r.spec.Streams, 1))
}

// forgetPath lets the transfer begin as if it were the first one to this host.
func (r *run) forgetPath() {
	to, err := netip.ParseAddrPort(r.ctl.remote)
	if err == nil {
		err = socket.ForgetPath(to.Addr())
	}
	if err != nil && socket.RemembersPaths() {
		r.result.Warnings = append(r.result.Warnings, "this host remembers earlier transfers to the far end, which changes "+
			"how this one began: "+err.Error())
	}
}

// connect opens all streams before it shows any token, so that they start together.
func (r *run) connect(ctx context.Context, a accept) ([]*socket.Stream, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.ctl.times.Answer, errors.New("a data connection was not set up within "+
		r.ctl.times.Answer.String()))
	defer cancel()
	options := engine.Options(r.spec.Direction == transfer.Up, r.spec.Near)
	options.Route = r.route
	address := r.ctl.remote
	if a.Port != 0 {
		host, _, _ := net.SplitHostPort(address)
		address = net.JoinHostPort(host, strconv.Itoa(a.Port))
	}
	conns := make([]*net.TCPConn, len(a.Tokens))
	errs := make([]error, len(a.Tokens))
	var dialing sync.WaitGroup
	for i := range conns {
		o := options
		if len(r.ports) > 0 && a.Port == 0 {
			o.LocalPort = r.ports[i]
		}
		dialing.Go(func() { conns[i], errs[i] = socket.Dial(ctx, address, o) })
	}
	dialing.Wait()
	err := errors.Join(errs...)
	for i, conn := range conns {
		if err == nil {
			_, err = io.WriteString(conn, a.Tokens[i])
		}
	}
	var streams []*socket.Stream
	for _, conn := range conns {
		if conn == nil {
			continue
		}
		if err != nil {
			conn.Close()
			continue
		}
		var s *socket.Stream
		if s, err = socket.NewStream(conn, options); err == nil {
			streams = append(streams, s)
		}
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		var option *socket.OptionError
		if errors.As(err, &option) {
			return streams, option
		}
		return streams, fmt.Errorf("data connection to %s: %w", address, plain(err, r.ctl.times.Answer))
	}
	return streams, nil
}

func closeAll(streams []*socket.Stream) {
	for _, s := range streams {
		s.Close()
	}
}
