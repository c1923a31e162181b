package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// runner makes the transfers of one direction, keeps what they showed and charges their cost.
type runner struct {
	cfg       Config
	direction transfer.Direction
	budget    *budget
	path      *pathModel
	seen      *observations
	sockets   *sockets
	notes     *notes
	remote    netip.AddrPort  // of the last transfer; invalid: not known
	control   string          // the congestion control that the sender uses by default; "": not known
	blackHole verdict.Verdict // of the baseline where its full segments vanish
	probes    bool            // transfers are probed, because their sender cannot be seen
	// sender and receiver are the ends' systems, Linux where they are not known.
	sender, receiver advice.System
}

func newRunner(cfg Config, d transfer.Direction) *runner {
	r := &runner{cfg: cfg, direction: d, sockets: &sockets{}, notes: &notes{}}
	stated := search.Budget{Time: cfg.Budget, Bytes: cfg.MaxBytes}
	r.budget = &budget{stated: stated, Budget: stated}
	r.path = &pathModel{notes: r.notes}
	r.seen = &observations{path: r.path, goal: cfg.Goal}
	r.systems(nil)
	return r
}

// systems takes the ends' systems from a transfer, except those that the Config states.
func (r *runner) systems(result *transfer.Result) {
	of := func(stated *advice.System, end func(*transfer.Result) *transfer.End) advice.System {
		switch {
		case stated != nil:
			return *stated
		case result == nil || end(result) == nil:
			return advice.Linux
		}
		return advice.SystemOf(end(result).Kernel)
	}
	sender := r.cfg.Near
	receiver := r.cfg.Far
	if r.direction == transfer.Down {
		sender = r.cfg.Far
		receiver = r.cfg.Near
	}
	r.sender = of(sender, (*transfer.Result).Sender)
	r.receiver = of(receiver, (*transfer.Result).Receiver)
}

// try makes one transfer, records it and charges its cost.
func (r *runner) try(ctx context.Context, t Trial) (Trial, error) {
	r.report(t.Setup, t.Purpose)
	start := time.Now()
	result, err := transfer.Run(ctx, r.cfg.Peer, t.Spec, nil)
	t.elapsed = time.Since(start)
	r.budget.spent.Time += t.elapsed
	if result == nil {
		return t, err
	}
	r.meet(result)
	received, ok := result.Received()
	if ok && received.Bytes == 0 && err == nil && r.completeBlackHole(&t, live.Judge(result)) {
		t.result = result
		r.seen.trials = append(r.seen.trials, t)
		return t, nil
	}
	if !ok || received.Bytes == 0 && err == nil {
		return t, fmt.Errorf("%s: %w in %s", t.name(), errNothing, units.Time(t.elapsed))
	}
	t.result = result
	t.bytes = received.Bytes
	r.budget.spent.Bytes += received.Bytes
	if err != nil {
		return t, err
	}
	// A simulated peer spends no time of ours.
	if d := received.Last; d > t.elapsed {
		r.budget.spent.Time += d - t.elapsed
		t.elapsed = d
	}
	t.Goodput = received.Bps()
	if t.Goodput == 0 { // all of it came at once
		t.Goodput = float64(received.Bytes) * 8 / t.elapsed.Seconds()
	}
	switch startup, ok := result.Startup(); {
	case t.whole:
		t.Goodput = float64(received.Bytes) * 8 / (received.Duration() + result.MinRTT()).Seconds()
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
	r.seen.leaveOutBucket(&t)
	sender, receiver := r.ends(&t.Spec)
	t.setEffective(*sender, *receiver)
	if !t.shared {
		r.seen.trials = append(r.seen.trials, t)
		r.seen.best = max(r.seen.best, t.Goodput)
	}
	return t, nil
}

// meet remembers the far end's address and the ends' systems.
func (r *runner) meet(result *transfer.Result) {
	r.systems(result)
	if result.Near != nil && len(result.Near.Streams) > 0 {
		r.remote = result.Near.Streams[0].Remote
	}
}

// completeBlackHole completes the trial of a transfer whose full segments vanished, and reports whether they did.
func (r *runner) completeBlackHole(t *Trial, v verdict.Verdict) bool {
	if r.blackHole.Limiter == verdict.MTUBlackHole {
		v = r.blackHole // a short run shows less
	}
	if v.Limiter != verdict.MTUBlackHole {
		return false
	}
	t.verdict = v
	t.Limiter = v.Limiter
	t.Goodput = nothing
	return true
}

// errNothing says that of a transfer nothing arrived.
var errNothing = errors.New("nothing arrived")

// timeouts is how long a transfer takes to show that its full segments vanish: four timeouts,
// each twice as long as the one before (RFC 6298 section 5.5).
const timeouts = 5 * time.Second

// tryFor makes one transfer as the goal wants it measured.
func (r *runner) tryFor(ctx context.Context, t Trial) (Trial, error) {
	if r.cfg.Goal == Fair {
		return r.shared(ctx, t)
	}
	return r.try(ctx, t)
}

// with returns the transfer of a setup. A clamp limits its window up to the size of automatic sizing, else buffers do.
func (r *runner) with(s Setup, length time.Duration, why search.Purpose) Trial {
	t := Trial{Asked: s.Window, Setup: s, Purpose: why, Remedy: s.besides(), Automatic: s == Setup{},
		Spec: transfer.Spec{Direction: r.direction, Time: length, Latency: r.probes}}
	sender, receiver := r.ends(&t.Spec)
	if s.Window > 0 {
		chosen := r.sockets.buffers(s.Window)
		sender.SendBuffer = chosen.SendBuffer
		receiver.ReceiveBuffer = chosen.ReceiveBuffer
		receiver.Clamp = chosen.Clamp
		t.Spec.Near.Force = true // only here: baseline runs get what any program gets
		// A web server's send buffer cannot be had; it may be large enough as it is.
		var refused *transfer.Unsupported
		if errors.As(r.check(&t), &refused) && refused.Field == "Far.SendBuffer" {
			sender.SendBuffer = 0
		}
	}
	sender.Congestion = s.Congestion
	sender.PacingBps = s.PacingBps
	sender.MSS = s.MSS
	t.Spec.Streams = s.Streams
	return t
}

// check returns why the peer cannot make a transfer.
func (r *runner) check(t *Trial) error { return r.cfg.Peer.Check(transfer.TCP(t.Spec)) }

// can reports whether the sender's system has what a setup changes, and the peer can carry it out.
func (r *runner) can(s Setup) bool {
	has := (s.Congestion == "" || r.sender.Has("TCP_CONGESTION")) &&
		(s.PacingBps == 0 || r.sender.Has("SO_MAX_PACING_RATE"))
	t := r.with(s, time.Second, Candidate)
	return has && r.check(&t) == nil
}

// ends returns the sending and the receiving end's sockets of a Spec.
func (r *runner) ends(s *transfer.Spec) (sender, receiver *transfer.Socket) {
	if r.direction == transfer.Up {
		return &s.Near, &s.Far
	}
	return &s.Far, &s.Near
}

// controls returns the congestion controls, other than the one in use, that the sender may have.
func (r *runner) controls(limits verdict.Name) (ideas []Setup) {
	if r.control == "" {
		return nil
	}
	offered := []string{"bbr", "cubic", "reno"}
	if r.direction == transfer.Up {
		offered = socket.CongestionControls()
	}
	names := []string{"bbr", "cubic"}
	if limits == verdict.AckPath { // reno's slow start goes on where acknowledgements wait
		names = []string{"reno", "bbr", "cubic"}
	}
	for _, name := range names {
		if name != r.control && slices.Contains(offered, name) {
			ideas = append(ideas, Setup{Congestion: name})
		}
	}
	return ideas
}

// segmentSizes returns segments to try where full ones vanish: those that were seen to pass, those that fit today's
// tunnels (IPv6's minimum MTU less headers), and those that fit any path (RFC 9293 section 3.7.1).
func (r *runner) segmentSizes() (sizes []int) {
	full := r.path.MSS + model.TimestampBytes // TCP_MAXSEG leaves out the option
	for _, size := range []int{r.path.PassingMSS, 1200, 536} {
		if size >= 536 && size < full && (len(sizes) == 0 || size < sizes[len(sizes)-1]) {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// report calls Progress.
func (r *runner) report(s Setup, why search.Purpose) {
	if r.cfg.Progress != nil {
		r.cfg.Progress(Progress{Direction: r.direction, Setup: s, Purpose: why, BestBps: r.seen.best,
			Done: math.Min(1, float64(r.budget.spent.Time)/float64(r.allowance()))})
	}
}
