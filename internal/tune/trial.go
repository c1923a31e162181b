package tune

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// Trial is one transfer that the loop made.
type Trial struct {
	Reason    string
	Setup     Setup
	Automatic bool   // nothing was changed
	Remedy    string // what was changed besides the window; "" if nothing was
	Asked     int    // window
	Effective int    // window that was reached; 0: not known
	Clipped   bool
	Lossless  bool
	Goodput   float64 // bit/s without slow start
	Limiter   verdict.Name
	Spec      transfer.Spec
	whole     bool    // slow start counts: what is of interest is how long it takes
	shared    bool    // another flow was beside it
	inTurn    bool    // of a contest or a proof
	others    float64 // goodput of that flow, bit/s
	verdict   verdict.Verdict
	result    *transfer.Result
	elapsed   time.Duration
	bytes     int64
}

// try makes one transfer, records it and charges its cost.
func (l *loop) try(ctx context.Context, t Trial) (Trial, error) {
	t.Spec.Direction = l.out.Direction
	l.progress(t)
	start := time.Now()
	result, err := transfer.Run(ctx, l.cfg.Peer, t.Spec, nil)
	t.elapsed = time.Since(start)
	l.elapsed += t.elapsed
	if result == nil {
		return t, err
	}
	if result.Near != nil || result.Far != nil {
		l.near = result.Near
		l.far = result.Far
	}
	received, ok := result.Received()
	if ok && received.Bytes == 0 && err == nil && l.swallowed(&t, live.Judge(result)) {
		t.result = result
		l.out.Trials = append(l.out.Trials, t)
		return t, nil
	}
	if !ok || received.Bytes == 0 && err == nil {
		return t, fmt.Errorf("%s: %w in %s", t.name(), errNothing, units.Time(t.elapsed))
	}
	t.result = result
	t.bytes = received.Bytes
	l.bytes += received.Bytes
	if err != nil {
		return t, err
	}
	// A simulated peer spends no time of ours.
	if d := received.Last; d > t.elapsed {
		l.elapsed += d - t.elapsed
		t.elapsed = d
	}
	t.Goodput = received.Bps()
	if t.Goodput == 0 { // all of it came at once
		t.Goodput = float64(received.Bytes) * 8 / t.elapsed.Seconds()
	}
	switch startup, ok := result.Startup(); {
	case t.whole:
		t.Goodput = float64(received.Bytes) * 8 / (received.Duration() + result.LeastRTT()).Seconds()
	case ok:
		t.Goodput = startup.SteadyBps
		if b, ok := result.Burst(); ok && b.SteadyBps > 0 {
			t.Goodput = b.SteadyBps
		}
	}
	t.Lossless = result.Lossless()
	t.verdict = live.JudgeSteady(result)
	if t.whole {
		t.verdict = live.Judge(result)
	}
	t.Limiter = t.verdict.Limiter
	sender, receiver := l.ends(&t.Spec)
	t.settle(*sender, *receiver)
	if !t.shared {
		l.out.Trials = append(l.out.Trials, t)
		l.best = max(l.best, t.Goodput)
	}
	return t, nil
}

// name is what a trial tries, in words.
func (t *Trial) name() string {
	switch {
	case t.Remedy != "":
		return t.Remedy
	case t.Automatic:
		return "automatic"
	}
	return units.Size(t.Asked).Exact()
}

// automatic is a transfer with the systems' defaults.
func (l *loop) automatic(length time.Duration, reason string) Trial {
	return Trial{Automatic: true, Reason: reason, Spec: transfer.Spec{Time: length}}
}

// window is a transfer whose window is held to the given bytes: by a clamp under
// automatic sizing where that gets so far by itself, else with buffers that hold it.
func (l *loop) window(window int, length time.Duration, reason string) Trial {
	t := Trial{Asked: window, Setup: Setup{Window: window}, Reason: reason, Spec: transfer.Spec{Time: length}}
	chosen := l.buffers(window)
	sender, receiver := l.ends(&t.Spec)
	sender.SendBuffer = chosen.SendBuffer
	receiver.ReceiveBuffer = chosen.ReceiveBuffer
	receiver.Clamp = chosen.Clamp
	// A web server's send buffer cannot be had; it may be large enough as it is.
	var refused *transfer.Unsupported
	if err := l.cfg.Peer.Check(transfer.TCP(withDirection(t.Spec, l.out.Direction))); errors.As(err, &refused) &&
		refused.Field == "Far.SendBuffer" {
		sender.SendBuffer = 0
	}
	return t
}

// buffers are the requests that give a window.
func (l *loop) buffers(window int) Chosen {
	c := Chosen{Setup: Setup{Window: window}, Clamp: window}
	if window > l.automaticSend {
		c.SendBuffer = window + window/4
	}
	if window > l.automaticReceive {
		c.ReceiveBuffer = window
	}
	switch {
	case l.senderOnly: // as to a sink that sets its own sockets
		c.Clamp = 0
		c.ReceiveBuffer = 0
		c.SendBuffer = window
	case l.noClamp:
		c.Clamp = 0
		c.ReceiveBuffer = window
	}
	return c
}

// ends are the sending and the receiving end's sockets of a Spec.
func (l *loop) ends(s *transfer.Spec) (sender, receiver *transfer.Socket) {
	if l.out.Direction == transfer.Up {
		return &s.Near, &s.Far
	}
	return &s.Far, &s.Near
}

// settle finds the window that really held: what the receiver let the sender see, or
// the bytes in flight where the sender's own buffer was the narrower. Automatic sizing
// opens the window no further than it is used, so there an offer below the request that
// was never filled counts as the request.
func (t *Trial) settle(sender, receiver transfer.Socket) {
	offered := t.result.OfferedWindow()
	flight := t.result.InFlight()
	narrow := t.Limiter == verdict.SendBuffer && flight > 0
	switch {
	case t.Asked == 0:
		t.Effective = flight
		if flight == 0 {
			t.Effective = offered
		}
		return
	case offered == 0:
		t.Effective = t.Asked
	case receiver.ReceiveBuffer == 0 && offered < t.Asked && flight < offered*9/10:
		t.Effective = t.Asked
	default:
		t.Effective = min(offered, t.Asked)
		t.Clipped = receiver.ReceiveBuffer > 0 && float64(offered) < 0.97*float64(t.Asked)
	}
	if narrow && sender.SendBuffer > 0 && float64(flight) < 0.9*float64(t.Effective) {
		t.Effective = flight
		t.Clipped = true
	}
}
