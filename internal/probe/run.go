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

	"github.com/fullpipe-net/fullpipe/internal/bulk"
	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// transferWithICMP measures latency by ICMP, for servers without echoes.
func (r *run) transferWithICMP(ctx context.Context) error {
	to, err := netip.ParseAddrPort(r.ctl.remote)
	if err != nil {
		return r.transfer(ctx)
	}
	var why string
	r.result.Latency, why, err = path.UnderLoad(ctx, to, path.Config{Route: r.route, OnlyICMP: true},
		func() error { return r.transfer(ctx) })
	if why != "" {
		r.result.Warnings = append(r.result.Warnings, why)
	}
	return err
}

// run is one transfer of a Client.
type run struct {
	ctl         *control
	route       socket.Route
	spec        transfer.Spec
	onInterval  func(transfer.Interval)
	result      *transfer.Result
	farDone     bool     // the far end has sent its result
	ports       []uint16 // of this end's data connections, reserved until the transfer ends; nil: the system chooses
	freePorts   func()
	echoes      *echoProbe // nil: none are sent
	onIdleKnown func()     // called when the idle path is measured; may be nil
}

func (r *run) transfer(ctx context.Context) error {
	if r.spec.Latency && r.ctl.hello.Echo {
		r.echoes = &echoProbe{ctl: r.ctl, spec: r.spec, startedAt: time.Now()}
		if err := r.echoes.probeIdle(ctx); err != nil {
			return fmt.Errorf("ask for an echo: %w", err)
		}
		defer func() { r.result.Latency, r.result.ClockDrift = r.echoes.result() }()
	}
	if r.onIdleKnown != nil {
		r.onIdleKnown()
	}
	answer, err := r.offer(ctx)
	if r.freePorts != nil {
		defer r.freePorts()
	}
	if err != nil {
		return err
	}
	r.forgetPath()
	if r.spec.Requests.On() {
		return r.sendRequests(ctx, answer)
	}
	streams, err := r.openStreams(ctx, answer)
	defer func() { closeAll(streams) }()
	if err != nil {
		return err
	}

	moving, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	far := make(chan farOutcome, 1)
	up := r.spec.Direction == transfer.Up
	var sending bulk.Latest
	each := func(i transfer.Interval) {
		i.Sender = sending.Get()
		if r.onInterval != nil {
			r.onInterval(i)
		}
		if r.echoes != nil {
			r.echoes.payloadBytes.Add(i.Bytes)
		}
	}
	if r.echoes != nil {
		r.echoes.farSending = &sending
		asking, stop := context.WithCancel(moving)
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			r.echoes.run(asking)
		}()
		defer func() { stop(); <-asked }()
	}
	go func() {
		f := r.ctl.readUntilResult(r.spec, each, r.echoes)
		if f.err != nil {
			cancel(f.err)
		}
		far <- f
	}()
	if r.spec.Time > 0 {
		late := time.AfterFunc(r.spec.Time+r.ctl.timeouts.Answer, func() { cancel(bulk.ErrStalled) })
		defer late.Stop()
	}
	p := bulk.Endpoint{Send: up, Spec: r.spec, Streams: streams, Preface: PrefaceSize, Stall: r.ctl.timeouts.Stall}
	if up {
		p.Latest = &sending
	}
	if !up {
		p.Each = each
	}
	var nearErr error
	r.result.Near, nearErr = p.Run(moving)
	if !up || nearErr != nil {
		closeAll(streams) // shows the sender that this end stopped reading
		streams = nil
	}
	return r.awaitResult(ctx, nearErr, far, false)
}

// awaitResult waits for the far end's result. After an error or interruption it sends Stop and waits for less
// time. hurried: Stop was sent before.
func (r *run) awaitResult(ctx context.Context, nearErr error, far <-chan farOutcome, hurried bool) error {
	ended := time.Now()
	wait := r.ctl.timeouts.Result
	if nearErr != nil {
		r.ctl.send(kindStop, struct{}{})
		wait = r.ctl.timeouts.Stop
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	var overdue <-chan time.Time // the far end may have received no data at all
	if nearErr == nil && r.spec.Time > 0 && !hurried {
		t := time.NewTimer(r.ctl.timeouts.Stop + 2*r.lastRTT())
		defer t.Stop()
		overdue = t.C
	}
	interrupted := ctx.Done()
	for {
		select {
		case f := <-far:
			r.farDone = f.err == nil
			r.result.Far = f.result.End
			r.result.Warnings = append(r.result.Warnings, f.result.Warnings...)
			r.result.Warnings = append(r.result.Warnings, clippedBuffers("near", r.result.Near)...)
			r.result.Warnings = append(r.result.Warnings, clippedBuffers("far", r.result.Far)...)
			var farErr error
			// Servers without Versions do not say why they stopped.
			obeyed := hurried && (f.result.Stopped || r.ctl.hello.Versions == nil)
			if f.result.Error != "" && !obeyed {
				farErr = errors.New("the far end: " + f.result.Error)
			}
			if errors.Is(nearErr, f.err) { // both ends report the same failure
				f.err = nil
			}
			return errors.Join(nearErr, f.err, farErr)
		case <-overdue:
			hurried = true
			r.ctl.send(kindStop, struct{}{})
			late.Reset(r.ctl.timeouts.Result)
		case <-interrupted:
			interrupted = nil
			overdue = nil // it would lengthen the wait
			r.ctl.send(kindStop, struct{}{})
			late.Reset(r.ctl.timeouts.Stop)
		case <-late.C:
			if nearErr == nil {
				waited := time.Since(ended).Round(100 * time.Millisecond)
				nearErr = fmt.Errorf("no result from the far end within %v of the transfer", waited)
			}
			r.ctl.close(nearErr)
			<-far
			return nearErr
		}
	}
}

// lastRTT returns the last RTT of this end's kernel, 0 if unknown.
func (r *run) lastRTT() (rtt time.Duration) {
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

func clippedBuffers(which string, e *transfer.End) []string {
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
	far := r.spec.Far
	own, ok := r.ctl.conn.LocalAddr().(*net.TCPAddr)
	if ok && !r.spec.Requests.On() && (far.ReceiveBuffer > 0 || far.Clamp > 0 || far.MSS > 0) {
		at := own.AddrPort()
		if ports, release, err := socket.ReservePorts(at.Addr(), max(r.spec.Streams, 1)); err == nil {
			o.Ports = ports
			o.From = at.Port()
			r.ports = ports
			r.freePorts = release
		}
	}
	if err := r.ctl.send(kindOffer, o); err != nil {
		return a, err
	}
	m, err := r.ctl.readNext(ctx, r.ctl.timeouts.Answer)
	if err != nil {
		return a, fmt.Errorf("offer a transfer: %w", err)
	}
	if err := m.decode(kindAccept, &a); err != nil {
		return a, err
	}
	if err := transfer.ValidateNotes(append(a.Warnings, a.Field, a.Error)); err != nil {
		return a, err
	}
	r.result.Warnings = append(r.result.Warnings, a.Warnings...)
	switch {
	case a.Field != "":
		return a, &transfer.Unsupported{Field: a.Field, Reason: a.Error}
	case a.Error != "":
		return a, errors.New("the far end: " + a.Error)
	}
	return a, a.check(max(r.spec.Streams, 1))
}

// forgetPath deletes this host's cached metrics of the path, so that earlier transfers do not influence this one.
func (r *run) forgetPath() {
	to, err := netip.ParseAddrPort(r.ctl.remote)
	if err == nil {
		err = socket.ForgetPath(to.Addr())
	}
	if err != nil && socket.RemembersPaths() {
		r.result.Warnings = append(r.result.Warnings, "this host has cached metrics of earlier transfers "+
			"to the far end, which change "+
			"how this one began: "+err.Error())
	}
}

// openStreams opens all streams before it sends tokens, so that they start together.
func (r *run) openStreams(ctx context.Context, a accept) ([]*socket.Stream, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.ctl.timeouts.Answer,
		errors.New("a data connection was not set up within "+
			r.ctl.timeouts.Answer.String()))
	defer cancel()
	options := bulk.Options(r.spec.Direction == transfer.Up, r.spec.Near)
	options.Route = r.route
	address := r.dataAddress(a)
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
		s, err = socket.NewStream(conn, options)
		if err == nil {
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
		return streams, &dataConnectionError{address, Simplify(err, r.ctl.timeouts.Answer), a.Port != 0}
	}
	return streams, nil
}

// dataAddress returns the address of the data connections.
func (r *run) dataAddress(a accept) string {
	if a.Port == 0 {
		return r.ctl.remote
	}
	host, _, _ := net.SplitHostPort(r.ctl.remote)
	return net.JoinHostPort(host, strconv.Itoa(a.Port))
}

func closeAll(streams []*socket.Stream) {
	for _, s := range streams {
		s.Close()
	}
}
