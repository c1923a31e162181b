package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// loop is the work on one direction.
type loop struct {
	cfg       Config
	out       Direction
	near, far *transfer.End

	elapsed  time.Duration
	bytes    int64
	budget   search.Budget // 0: not known yet
	unpicked bool          // what is proven seemed to be the best of a contest that was broken off
	// extended says that the budget was doubled for a decision that was open.
	extended bool
	best     float64

	round time.Duration // the least round trip of a full segment
	knee  float64       // bytes
	lossy int           // the round trips that a transfer takes because it loses; 0: it does not
	burst time.Duration // for how long the path lets more through at first
	// How far the systems get by themselves: buffers up to here need no request.
	automaticSend, automaticReceive int
	noClamp                         bool
	// The receiver's window cannot be asked for: the sender's buffer has to hold it.
	senderOnly bool
	today      verdict.Verdict // of what a program gets today
	control    string          // the congestion control that it gets; "": not known
	searched   *search.Search  // nil: there was no search
	answer     search.Answer
	winner     Setup       // of the contests; zero: none was shown to help
	pairNoise  stats.Noise // of one pair in the last contest
	shown      bool        // the proof showed a gain, with search.ContestError
	vain       bool        // a contest beside what there is was decided: nothing in it helps
	fileBytes  int64       // bytes that a proof of --apply transfers; 0: for a time
}

func newLoop(cfg Config, d transfer.Direction) *loop {
	l := &loop{cfg: cfg, out: Direction{Direction: d, Goal: cmp.Or(cfg.Goal, Throughput), Verdict: search.Inconclusive,
		Reason: "nothing was measured"}}
	l.budget = search.Budget{Time: cfg.Budget, Bytes: cfg.MaxBytes}
	return l
}

func (l *loop) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{l.ask, l.begin, l.climb, l.seek, l.prove, l.again} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin measures what a program gets today, for the first time.
func (l *loop) begin(ctx context.Context) error {
	rtt := l.out.Path.RTT
	length := max(14*rtt, time.Second)
	t, err := l.try(ctx, l.automatic(length, "what a program gets today"))
	if errors.Is(err, errNothing) {
		t, err = l.try(ctx, l.automatic(timeouts, "does anything get through?"))
	}
	if err != nil {
		return err
	}
	if l.swallows() {
		l.today = t.verdict
		l.handshake(t.result)
		return l.pass(ctx)
	}
	if _, settled := t.result.Startup(); !settled && !l.over(0.2) {
		length *= 2
		if t, err = l.try(ctx, l.automatic(length, "what a program gets today, for longer")); err != nil {
			return err
		}
	}
	longer := l.leaves(max(time.Duration(l.few(&t)*float64(length)), l.longer(&t, length)))
	if 2*longer >= 3*length {
		// A run of a few segments, of few losses or behind a burst tells no rate: it is left out.
		l.out.Trials = nil
		if t, err = l.try(ctx, l.automatic(longer, "what a program gets today, for longer")); err != nil {
			return err
		}
	}
	l.learn(&t)
	l.today = t.verdict
	if end := t.result.Sender(); end != nil && len(end.Streams) > 0 {
		l.control = end.Streams[0].Congestion
	}
	l.automaticSend = t.Effective
	l.automaticReceive = min(t.result.OfferedWindow(), 2*t.Effective)
	return nil
}

// enoughSegments have to arrive in the first run: half of one, by which a run's ends may be
// off, is 2 % then. A modem of 14.4 kbit/s takes 21 s for them.
const enoughSegments = 25

// few is how many times longer a run has to be for enough segments, 1 at least.
func (l *loop) few(t *Trial) float64 {
	mss := 1448
	if h := shake(t.result.Sender()); h != nil && h.MSS > 0 {
		mss = h.MSS
	}
	return max(1, float64(enoughSegments*mss)/float64(max(t.bytes, 1)))
}

// leaves is a transfer's length, or as much of it as leaves half of the budget that was stated. Where
// none was, it follows from the rate, which this is about.
func (l *loop) leaves(length time.Duration) time.Duration {
	if l.cfg.Budget == 0 {
		return length
	}
	return min(length, l.cfg.Budget/2-l.elapsed)
}

// climbShare is the part of a stated budget that climbing may begin its last transfer in. While
// windows hold the transfers back there is nothing else to look for.
const climbShare = 0.6

// climb gets windows out of the way: while a transfer is held back by its window, the
// next one gets eight times as much.
func (l *loop) climb(ctx context.Context) error {
	if l.swallows() {
		return nil
	}
	last := l.out.Trials[len(l.out.Trials)-1]
	clamped := l.window(1<<20, time.Second, "")
	clamped.Spec.Direction = l.out.Direction
	l.noClamp = l.cfg.Peer.Check(transfer.TCP(clamped.Spec)) != nil
	if l.noClamp {
		fixed := l.window(1<<20, time.Second, "")
		l.senderOnly = l.cfg.Peer.Check(transfer.TCP(withDirection(fixed.Spec, l.out.Direction))) != nil
	}
	for held := last.Effective; l.held(&last) && !l.over(climbShare); {
		next := max(8*held, 16*l.out.Path.MSS)
		t := l.window(next, l.config().Length(next), "how far the path goes")
		if l.cfg.Peer.Check(transfer.TCP(withDirection(t.Spec, l.out.Direction))) != nil {
			break
		}
		t, err := l.try(ctx, t)
		if err != nil {
			return err
		}
		l.learn(&t)
		if t.Effective < 2*held {
			last = t
			break
		}
		held = t.Effective
		last = t
	}
	l.out.Path.AtLeast = l.held(&last)
	if !last.Lossless && !l.out.Path.AtLeast && last.Limiter != verdict.Bottleneck {
		if err := l.betweenLosses(ctx, &last); err != nil {
			return err
		}
	}
	l.allow()
	return nil
}

// allow fills in what of the budget was not stated.
func (l *loop) allow() {
	if l.budget.Time == 0 {
		l.budget.Time = l.config().Budget().Time
		if l.cfg.Goal == Fair {
			l.budget.Time *= fairBudgets
		}
	}
	if l.budget.Bytes == 0 {
		l.budget.Bytes = l.bytesRule()
	}
}

// bytesRule is the payload that may be moved where that was not stated: by the search's rule,
// or what the path carries in a time that was, or that is longer than the rule's because it loses.
func (l *loop) bytesRule() int64 {
	bytes := l.config().Budget().Bytes
	if l.cfg.Goal == Fair {
		bytes *= fairBudgets
	}
	long := l.cfg.Budget
	if l.lossy > 0 {
		long = l.budget.Time
	}
	return max(bytes, int64(l.out.Path.CapacityBps/8*long.Seconds()))
}

// betweenLosses looks at what a lossy path carries with a sender that does not take each
// loss for a full link, by the same window as the last transfer.
func (l *loop) betweenLosses(ctx context.Context, last *Trial) error {
	s := Setup{Window: last.Asked, Congestion: lossBlind}
	if l.over(climbShare) || !slices.ContainsFunc(l.controls(), func(c Setup) bool { return c.Congestion == lossBlind }) ||
		!l.can(s) {
		return nil
	}
	t, err := l.try(ctx, l.with(s, l.length(s), "what the path carries between losses"))
	switch {
	case ctx.Err() != nil:
		return err
	case err != nil:
		l.warn("%s could not be tried: %v", s, err)
	default:
		l.learn(&t)
	}
	return nil
}

// lossBlind is the congestion control that does not take each loss for a full link.
const lossBlind = "bbr"

// held says that a transfer's window or buffer limited it, or that it filled its window
// and built no queue: more might carry more. Of a lossy one counts what it carried while
// nothing was lost: a window that limits there is not acquitted by what losses cost beside it.
func (l *loop) held(t *Trial) bool {
	if t.Effective == 0 {
		return false
	}
	if t.Limiter == verdict.ReceiverWindow || t.Limiter == verdict.SendBuffer {
		return true
	}
	rate := t.Goodput
	if !t.Lossless {
		rate = max(rate, burst(t.result))
	}
	turn := time.Duration(float64(t.Effective) * 8 / rate * float64(time.Second))
	return turn < l.round*6/5+l.out.Path.Jitter
}

// config describes the path to the search.
func (l *loop) config() search.Config {
	p := &l.out.Path
	return search.Config{MSS: p.MSS, RTT: l.round, CapacityBps: p.CapacityBps, Knee: l.knee, Seed: l.cfg.Seed,
		Rounds: l.rounds(), Burst: l.burst}
}

// search looks for the window.
func (l *loop) search(ctx context.Context) error {
	cfg := l.config()
	left := l.left(search.Share)
	cfg.Noise = l.expectedNoise()
	cfg.Time = left.Time
	cfg.Bytes = left.Bytes
	if cfg.Time <= 0 || cfg.Bytes <= 0 {
		l.warn("the budget was spent before the search began")
		return nil
	}
	s := search.New(cfg)
	l.searched = s
	for _, t := range l.of(func(t *Trial) bool { return t.Remedy == "" }) {
		o := t.outcome()
		o.Elapsed = 0
		o.Bytes = 0 // charged already
		s.Observe(search.Trial{Automatic: t.Automatic, Window: t.Asked}, o)
	}
	return l.follow(ctx, s)
}

// follow makes the trials that a search asks for.
func (l *loop) follow(ctx context.Context, s *search.Search) error {
	defer func() { l.answer = l.answerOf(s) }()
	for {
		next, more := s.Next()
		if !more {
			return nil
		}
		t := l.window(next.Window, next.Time, next.Reason)
		if next.Automatic {
			t = l.automatic(next.Time, next.Reason)
		}
		t.Spec.Bytes = next.Bytes
		t, err := l.try(ctx, t)
		if err != nil {
			return err
		}
		s.Observe(next, t.outcome())
		switch a := s.Answer(); {
		case a.Verdict == search.Change && a.Clipped:
			return nil // what is left to find is what to do about the ceilings
		case l.long() && a.Verdict != search.Change && l.linkIsFull():
			return nil
		}
	}
}

func (t *Trial) outcome() search.Outcome {
	return search.Outcome{GoodputBps: t.Goodput, Window: t.Effective, Clipped: t.Clipped, Lossless: t.Lossless,
		Elapsed: t.elapsed, Bytes: t.bytes}
}

// allowance is the budget's time; while that is not known, 30 s or 150 round trips.
func (l *loop) allowance() time.Duration {
	if l.budget.Time > 0 {
		return l.budget.Time
	}
	return max(30*time.Second, 150*l.out.Path.RTT)
}

// over says that a share of the budget is spent.
func (l *loop) over(share float64) bool {
	return float64(l.elapsed) >= share*float64(l.allowance()) ||
		l.budget.Bytes > 0 && float64(l.bytes) >= share*float64(l.budget.Bytes)
}

// affords says whether another transfer of that length fits in a share of the budget.
func (l *loop) affords(length time.Duration, share float64) bool {
	bytes := l.out.Path.CapacityBps / 8 * length.Seconds()
	return float64(l.elapsed+length) <= share*float64(l.budget.Time) &&
		float64(l.bytes)+bytes <= share*float64(l.budget.Bytes)
}

func (l *loop) sendsNear() bool { return l.out.Direction == transfer.Up }

func (l *loop) say(format string, args ...any) {
	if l.cfg.Progress != nil {
		l.cfg.Progress(Progress{Direction: l.out.Direction, Doing: fmt.Sprintf(format, args...), BestBps: l.best,
			Done: math.Min(1, float64(l.elapsed)/float64(l.allowance()))})
	}
}

func (l *loop) progress(t Trial) {
	what := "trying automatic sizing"
	switch {
	case t.Remedy != "":
		what = "trying " + t.Remedy
	case !t.Automatic:
		what = "trying a window of " + units.Size(t.Asked).Exact()
	}
	l.say("%s: %s", what, t.Reason)
}

func withDirection(s transfer.Spec, d transfer.Direction) transfer.Spec {
	s.Direction = d
	return s
}
