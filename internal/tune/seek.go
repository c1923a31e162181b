package tune

import (
	"context"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// seek finds the setup to end with: the window that is enough, where windows may matter,
// and else or on top of it what the verdict calls for.
func (l *loop) seek(ctx context.Context) error {
	switch {
	case l.swallows():
		return nil
	case l.cfg.Goal == Latency:
		return l.seekLatency(ctx)
	}
	if err := l.outlast(ctx); err != nil {
		return err
	}
	if l.long() && l.today.Limiter == verdict.Bottleneck {
		if done, err := l.atTheLink(ctx); done || err != nil {
			return err
		}
	}
	first := l.search
	then := l.remedies
	if lucky := l.lucky(); lucky || !l.windowsMatter() {
		if lucky {
			l.last(min(mostRounds*l.round, longest))
		}
		first = l.remedies
		then = l.refine
	}
	for _, step := range []func(context.Context) error{first, then, l.decide} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lucky says that what there is was seen to fill the link only by luck: it loses, and another transfer carried
// clearly more.
func (l *loop) lucky() bool {
	return l.long() && mayBeFull(&l.today) && l.lossIsLeft(l.of(func(t *Trial) bool { return t.Automatic }))
}

// mayBeFull says that a verdict names a full link, or leaves it open among others.
func mayBeFull(v *verdict.Verdict) bool {
	return v.Limiter == verdict.Bottleneck || slices.Contains(v.Candidates, verdict.Bottleneck)
}

// enoughToday are the runs of what there is by which it is told from the most that a path carries.
const enoughToday = 3

// linkIsFull says that runs enough of what there is came so near to the most that the path carried that
// nothing else can give as much as it takes to matter.
func (l *loop) linkIsFull() bool {
	return len(l.of(func(t *Trial) bool { return t.Automatic })) >= enoughToday && l.full(search.Nearly)
}

// atTheLink looks whether a path that loses is full all the same: where each transfer is long a search of
// windows would take the whole budget to tell one percent from the next. What takes losses
// otherwise is held beside what there is; where neither carries more, nothing is left to be tried.
func (l *loop) atTheLink(ctx context.Context) (done bool, err error) {
	last := l.out.Trials[len(l.out.Trials)-1]
	if blind := l.of(func(t *Trial) bool { return t.Setup.Congestion == lossBlind }); len(blind) == 0 {
		if err := l.betweenLosses(ctx, &last); err != nil {
			return false, err
		}
	}
	for !l.over(climbShare) {
		today := l.of(func(t *Trial) bool { return t.Automatic })
		if len(today) >= enoughToday || stats.Median(goodputs(today)) < search.Nearly*l.out.Path.CapacityBps {
			break
		}
		if _, err := l.try(ctx, l.automatic(l.length(Setup{}), "does it fill the link again?")); err != nil {
			return false, err
		}
	}
	return l.linkIsFull(), nil
}

// windowsMatter says whether the model leaves room for another window to help: one was
// seen to, the path may carry more than any window let it, or nobody knows what limits.
func (l *loop) windowsMatter() bool {
	today := l.of(func(t *Trial) bool { return t.Automatic })
	if l.acksLimit() {
		return false // of the window that fills the way forth nothing is known
	}
	if l.out.Path.AtLeast {
		return true
	}
	blames := func(t *Trial) bool { return blamed(&t.verdict) != "" }
	if l.lossIsLeft(today) && !slices.ContainsFunc(today, blames) && !l.reaches(l.out.Path.Window) {
		return false // loss keeps it below what any window would
	}
	for _, t := range today {
		if t.Limiter != verdict.Congestion && t.Limiter != verdict.MTUBlackHole {
			return true
		}
	}
	// One that loss limits too is only luckier.
	faster := l.of(func(t *Trial) bool {
		return t.Remedy == "" && !t.Automatic && t.Limiter != verdict.Congestion &&
			t.Goodput > farFaster*slices.Max(goodputs(today))
	})
	return len(faster) > 0
}

// acksLimit says that acknowledgements' way back is what limits what there is.
func (l *loop) acksLimit() bool {
	today := l.of(func(t *Trial) bool { return t.Automatic })
	return len(today) > 0 && !slices.ContainsFunc(today, func(t *Trial) bool { return t.Limiter != verdict.AckPath })
}

// farFaster is by how much one transfer has to be faster than today's, in spite of loss, to
// tell of its window rather than of its luck.
const farFaster = 1.5

// ceiling is the most that the path carries, in bit/s, where that was seen and is what the goal asks for.
func (l *loop) ceiling() (bps float64, known bool) {
	p := &l.out.Path
	return p.CapacityBps, !p.AtLeast && !l.answer.Clipped && l.cfg.Goal != Latency && l.cfg.Goal != Fair
}

// carriesAll says that a setup comes so near to the ceiling that nothing on top of it is left to gain.
func (l *loop) carriesAll(s Setup) bool {
	bps, known := l.ceiling()
	runs := goodputs(l.of(func(t *Trial) bool { return t.Setup == s }))
	return known && len(runs) > 0 && stats.Median(runs) >= search.Nearly*bps
}

// lossIsLeft says that loss keeps transfers well below what the path was seen to carry.
func (l *loop) lossIsLeft(trials []*Trial) bool {
	lossy := slices.ContainsFunc(trials, func(t *Trial) bool { return !t.Lossless })
	return lossy && stats.Median(goodputs(trials))*tenth < l.out.Path.CapacityBps
}
