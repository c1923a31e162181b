package rfc6349

import (
	"context"
	"errors"
	"math"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// maxConnections bounds the tests over several connections.
const maxConnections = 16

// room has the ceilings of automatic buffers of a direction's systems, bytes; 0: no ceiling
// was reached. Larger windows need requested buffers.
type room struct{ send, receive int }

// ladder runs one connection with automatic sizing, then with one window after
// the other (section 3.3).
func (t *tester) ladder(ctx context.Context, d *Direction) error {
	automatic := Test{Kind: Automatic, Connections: 1}
	if err := t.try(ctx, d, &automatic, Statement{Code: RunningAutomatic}); err != nil {
		return err
	}
	d.Tests = append(d.Tests, automatic)
	for _, rung := range t.plan.rungs {
		window := model.Window(rung*d.BDPBytes, t.out.Path.MSS)
		test := Test{Kind: Window, Connections: 1, Window: window, Share: share(window, d.BDPBytes)}
		if n := len(d.Tests); d.Tests[n-1].Window == window {
			continue // two segments are the smallest window
		}
		step := Statement{Code: RunningWindow, Values: verdict.Values{"bdp_ratio": test.Share}}
		if err := t.try(ctx, d, &test, step); err != nil {
			return err
		}
		d.Tests = append(d.Tests, test)
	}
	return nil
}

// full repeats, in turn, one connection with the best window that should suffice and
// several that share it (section 5.1).
func (t *tester) full(ctx context.Context, d *Direction) error {
	window, ofBDP := t.sufficient(d)
	single := Test{Kind: Full, Connections: 1, Window: window, Share: ofBDP}
	several := Test{Kind: Several, Connections: min(max(model.Connections(d.BDPBytes, model.MaxUnscaled), 2),
		maxConnections)}
	if window > 0 {
		several.Window = model.Window(float64(window)/float64(several.Connections), t.out.Path.MSS)
		several.Share = share(several.Window*several.Connections, d.BDPBytes)
	}
	var err error
	for i := range t.plan.repeats {
		if err = t.try(ctx, d, &single, Statement{Code: RunningSingle, Values: t.turn(i)}); err != nil {
			break
		}
		step := Statement{Code: RunningSeveral, Values: t.turn(i)}
		step.Values["connections"] = float64(several.Connections)
		if err = t.try(ctx, d, &several, step); err != nil {
			break
		}
	}
	d.Tests = append(d.Tests, single, several)
	return err
}

// sufficient returns the smallest window of at least the bandwidth-delay product that was as
// fast as any; 0 for automatic sizing, if that was clearly faster.
func (t *tester) sufficient(d *Direction) (window int, share float64) {
	const alike, clearly = 0.995, 1.02
	var best, automatic float64
	for i := range d.Tests {
		switch test := &d.Tests[i]; {
		case test.Typical() == nil:
		case test.Kind == Automatic:
			automatic = test.Typical().SteadyBps
		case test.Share >= 0.99:
			best = max(best, test.Typical().SteadyBps)
		}
	}
	if best == 0 || automatic > clearly*best {
		return 0, 0
	}
	for i := range d.Tests { // from the smallest window up
		if test := &d.Tests[i]; test.Kind == Window && test.Share >= 0.99 && test.Typical() != nil &&
			test.Typical().SteadyBps >= alike*best {
			return test.Window, test.Share
		}
	}
	return 0, 0
}

// share returns a window as a share of the bandwidth-delay product; 0 if that is not known.
func share(window int, bdp float64) float64 {
	if bdp == 0 {
		return 0
	}
	return float64(window) / bdp
}

// try adds one run to a test.
func (t *tester) try(ctx context.Context, d *Direction, test *Test, step Statement) error {
	test.Direction = d.Direction
	test.AchievableBps = t.achievable(d, test)
	if t.budgetSpent() {
		if len(test.Runs) == 0 {
			test.Skipped.Code = BudgetSpent
		}
		return nil
	}
	spec, why := t.spec(d, test)
	if why != "" {
		test.Skipped = Statement{Code: Refused, Cause: why}
		return nil
	}
	t.report(d, step)
	r, intervals, err := t.transfer(ctx, spec)
	var refused *transfer.Unsupported
	switch {
	case errors.As(err, &refused):
		test.Skipped = Statement{Code: Refused, Cause: refused.Error()}
		return nil
	case r == nil || err != nil && ctx.Err() == nil:
		return err
	}
	add(test, t.newRun(d, test, r, intervals), t.rtt())
	return err
}

// achievable returns the rate that a test's windows and the bottleneck allow.
func (t *tester) achievable(d *Direction, test *Test) float64 {
	most := t.tcpOf(d.Bottleneck.Bps)
	if d.Bottleneck.AtLeast {
		most = max(most, d.MaxTCPBps, t.mostTCP(d))
	}
	if test.Window == 0 {
		return most
	}
	return math.Min(model.Rate(test.Window*test.Connections, t.rtt()), most)
}

// spec returns the transfer of a test; why is the peer's reason if it does not support it.
func (t *tester) spec(d *Direction, test *Test) (spec transfer.Spec, why string) {
	spec = transfer.Spec{Direction: d.Direction, Streams: test.Connections, Time: t.plan.length}
	sender := &spec.Near
	receiver := &spec.Far
	if d.Direction == transfer.Down {
		sender, receiver = receiver, sender
	}
	if test.Window > 0 {
		have := seenRoom(d)
		receiver.Clamp = test.Window
		spec.Near.Force = true // the line is tested, not what a program of this host gets
		if have.receive > 0 && test.Window > have.receive {
			receiver.ReceiveBuffer = test.Window
		}
		if have.send > 0 && test.Window > have.send {
			sender.SendBuffer = test.Window + test.Window/4
		}
		if t.cfg.Peer.Check(transfer.TCP(spec)) != nil { // stock iperf3 sets buffers only
			receiver.Clamp = 0
			receiver.ReceiveBuffer = test.Window
		}
	}
	var refused *transfer.Unsupported
	if err := t.cfg.Peer.Check(transfer.TCP(spec)); errors.As(err, &refused) {
		return spec, refused.Error()
	} else if err != nil {
		return spec, err.Error()
	}
	return spec, ""
}

// seenRoom returns the ceilings of the buffers that limited the automatic run.
func seenRoom(d *Direction) (r room) {
	for i := range d.Tests {
		if run := d.Tests[i].Typical(); d.Tests[i].Kind == Automatic && run != nil &&
			run.Verdict.Subtype != verdict.AutotuneGrowing {
			switch run.Verdict.Limiter {
			case verdict.SendBuffer:
				r.send = run.InFlightBytes
			case verdict.ReceiverWindow:
				r.receive = run.InFlightBytes
			}
		}
	}
	return r
}
