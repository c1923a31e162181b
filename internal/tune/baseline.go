package tune

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// baseline is what a program gets today.
type baseline struct {
	*runner
	verdict verdict.Verdict
}

// measure measures the baseline. Where full segments vanish it returns a setup whose segments pass.
func (b *baseline) measure(ctx context.Context) (passing Setup, err error) {
	rtt := b.path.RTT
	length := max(14*rtt, time.Second)
	t, err := b.try(ctx, b.with(Setup{}, length, Today))
	if errors.Is(err, errNothing) {
		t, err = b.try(ctx, b.with(Setup{}, timeouts, AnythingPasses))
	}
	if err != nil {
		return passing, err
	}
	if b.seen.isBlackHole() {
		b.verdict = t.verdict
		b.blackHole = t.verdict
		b.path.handshake(t.result)
		return b.findSegments(ctx)
	}
	if _, settled := t.result.Startup(); !settled && !b.isSpent(0.2) {
		length *= 2
		if t, err = b.try(ctx, b.with(Setup{}, length, TodayLonger)); err != nil {
			return passing, err
		}
	}
	longer := b.budget.remainingBudget(max(time.Duration(needsMoreSegments(&t)*float64(length)), extended(&t, length)))
	if 2*longer >= 3*length {
		// A run of a few segments, of few losses or behind a burst shows no rate: it is left out.
		b.seen.trials = nil
		if t, err = b.try(ctx, b.with(Setup{}, longer, TodayLonger)); err != nil {
			return passing, err
		}
	}
	b.path.learn(&t)
	b.verdict = t.verdict
	if end := t.result.Sender(); end != nil && len(end.Streams) > 0 {
		b.control = end.Streams[0].Congestion
	}
	b.sockets.automaticSend = t.Effective
	b.sockets.automaticReceive = min(t.result.OfferedWindow(), 2*t.Effective)
	return passing, nil
}

// findSegments returns the setup of segments that pass where full ones vanish, zero if none do. It is the answer, for
// nothing else can be measured; the verification has to show it.
func (b *baseline) findSegments(ctx context.Context) (Setup, error) {
	for _, size := range b.segmentSizes() {
		s := Setup{MSS: size}
		if !b.can(s) || b.isSpent(0.8) {
			continue
		}
		t, err := b.try(ctx, b.with(s, max(14*b.path.RTT, time.Second), SegmentsPass))
		if err != nil {
			return Setup{}, err
		}
		if t.Goodput > nothing {
			b.path.learn(&t)
			b.allow()
			return s, nil
		}
	}
	return Setup{}, nil
}

// enoughSegments have to arrive in the first run: half of one, by which a run's ends may be
// off, is 2 % then. A modem of 14.4 kbit/s takes 21 s for them.
const enoughSegments = 25

// needsMoreSegments returns how many times longer a run has to be for enoughSegments, at least 1.
func needsMoreSegments(t *Trial) float64 {
	mss := 1448
	if h := firstHandshake(t.result.Sender()); h != nil && h.MSS > 0 {
		mss = h.MSS
	}
	return max(1, float64(enoughSegments*mss)/float64(max(t.bytes, 1)))
}

// policedRun is the length of the first run where a policer is suspected: buckets hold a second's traffic or a few
// (Flach et al., SIGCOMM 2016, section 4).
const policedRun = 5 * time.Second

// slowStart is how many round trips the first run is given to open its window.
const slowStart = 8

// extended returns how long the first run should have been, by what it showed.
func extended(t *Trial, length time.Duration) time.Duration {
	if long := (search.LossyRounds + slowStart) * t.result.MinRTT(); t.loses() && 2*long > 3*length {
		length = long
	}
	if _, burst := t.result.Burst(); burst || t.verdict.Subtype == verdict.Policer || t.mayBePoliced() {
		length = max(length, policedRun)
	}
	return length
}

// lossBlind is the congestion control that does not take each loss for a full link.
const lossBlind = "bbr"

// tryLossBlind measures what a lossy path carries with lossBlind, by the same window as the last
// transfer, or by a larger one where that limits.
func (b *baseline) tryLossBlind(ctx context.Context, last *Trial) error {
	s := Setup{Window: last.Asked, Congestion: lossBlind}
	offered := slices.Contains(b.controls(b.verdict.Limiter), Setup{Congestion: lossBlind})
	for offered && (!b.isSpent(climbShare) || b.path.AtLeast && b.budget.stated.Time == 0) && b.can(s) {
		t, err := b.try(ctx, b.with(s, b.length(s), BetweenLosses))
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			b.notes.add(Statement{Code: NotTried, Setup: s, Err: err})
			return nil
		}
		b.path.learn(&t)
		b.path.AtLeast = s.Window > 0 && b.path.limitedByWindow(&t)
		if !b.path.AtLeast || t.Clipped {
			return nil
		}
		s.Window *= widened
	}
	return nil
}

// fullByLuck reports that the baseline filled a link that loses, and another transfer carried clearly more.
func (b *baseline) fullByLuck() bool {
	return b.longTransfers() && mayBeFull(&b.verdict) && b.seen.lossIsLeft(b.seen.baselineRuns())
}

// confirmFullLink reports whether a path that loses is full all the same, by baseline runs and lossBlind. Where each
// transfer is long, a window search would spend the whole budget on differences of one percent.
func (b *baseline) confirmFullLink(ctx context.Context) (done bool, err error) {
	last := b.seen.trials[len(b.seen.trials)-1]
	if len(b.seen.lossBlindRuns()) == 0 {
		if err := b.tryLossBlind(ctx, &last); err != nil {
			return false, err
		}
	}
	for !b.isSpent(climbShare) && b.mayShowFull() {
		if _, err := b.try(ctx, b.with(Setup{}, b.length(Setup{}), FillsAgain)); err != nil {
			return false, err
		}
	}
	return b.seen.linkIsFull(), nil
}

// maxFullRuns are the baseline runs after which a link that most of them do not fill is not said to be full.
const maxFullRuns = 9

// mayShowFull reports that further baseline runs may show that the link is full: that two of three fill it. More than
// the fewest runs are made only where one filled it entirely and the link limited all of them: accidents kept the
// others from it.
func (b *baseline) mayShowFull() bool {
	today := b.seen.baselineRuns()
	runs := goodputs(today)
	capacity := b.path.CapacityBps
	byAccident := slices.Max(runs) >= search.Enough*capacity &&
		!slices.ContainsFunc(today, func(t *Trial) bool { return t.Limiter != verdict.Bottleneck })
	if !byAccident {
		return len(today) < enoughToday && stats.Median(runs) >= search.Nearly*capacity
	}
	full := len(slices.DeleteFunc(runs, func(bps float64) bool { return bps < search.Nearly*capacity }))
	return !b.seen.linkIsFull() && 3*(full+maxFullRuns-len(today)) >= 2*maxFullRuns
}

// outlastShare is the most of the budget that one run takes to see whether a link stays full, and statedShare of
// one that was stated: that is not extended.
const outlastShare, statedShare = 0.2, 0.05

// outlast measures whether a link that was full and lost segments stays full: losses may keep a transfer from filling
// again what slow start filled. If it does not stay full, later transfers last as long and the first runs are dropped.
// It reports whether they were.
func (b *baseline) outlast(ctx context.Context) (dropped bool, err error) {
	today := b.seen.baselineRuns()
	lost := b.seen.of(func(t *Trial) bool { return t.Spec.Streams < 2 && t.loses() })
	full := b.verdict.Limiter == verdict.Congestion && !b.path.AtLeast &&
		stats.Median(goodputs(today)) >= search.Nearly*b.path.CapacityBps
	if !full && !mayBeFull(&b.verdict) || len(lost) == 0 {
		return false, nil
	}
	share := outlastShare
	regrowth := b.path.regrowth()
	if b.budget.stated.Time > 0 {
		share = statedShare
	}
	length := min(regrowth*3/2, longest, time.Duration(share*float64(b.allowance())))
	longEnough := 2*length >= regrowth
	seen := slices.ContainsFunc(today, func(t *Trial) bool { return 3*t.Spec.Time >= 2*length })
	if !longEnough || seen || !b.affords(length, 1) {
		return false, nil
	}
	t, err := b.try(ctx, b.with(Setup{}, length, StaysFull))
	full = t.Limiter == verdict.Bottleneck || t.Goodput >= search.Nearly*b.path.CapacityBps
	if err != nil || full && !t.drained() {
		return false, err
	}
	b.lengthen(length)
	b.seen.trials = slices.DeleteFunc(b.seen.trials, func(t Trial) bool { return t.Automatic && t.Spec.Time < length })
	b.verdict = t.verdict
	return true, nil
}
