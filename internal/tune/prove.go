package tune

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
)

const (
	confidence = 0.95
	mostPairs  = 8
	// fewestProof are the pairs that a noisy path's factor takes.
	fewestProof = 3
	tight       = 0.03 // an interval this narrow either way needs no more runs
)

// target is the setup whose gain is to be proven; false where nothing is to be changed.
func (l *loop) target() (Setup, bool) {
	switch {
	case l.winner != Setup{}:
		return l.winner, true
	case l.answer.Verdict == search.Change:
		return Setup{Window: l.answer.Asked}, true
	}
	return Setup{}, false
}

// prove measures before and after in turn, A B B A, until the factor is known well enough
// or the budget ends. What it measures of windows counts in the search too: where another
// window turns out to be the one to choose, the proof begins anew with that.
func (l *loop) prove(ctx context.Context) error {
	target, ok := l.target()
	if l.pairNoise.DOF == 0 { // no contest told
		l.pairNoise = l.answer.Noise
		l.pairNoise.Dev *= math.Sqrt2
	}
	var before, after []float64
	var was, is []*Trial
	for ok && len(before) < mostPairs && !l.proven(before, after) &&
		(l.affords(l.span(Setup{})+l.span(target), 1) || better(before, after) && l.double()) {
		b, a, err := l.pair(ctx, target, len(before)%2 == 1)
		if err != nil {
			return err
		}
		before = append(before, l.score(b, 0))
		was = append(was, b)
		after = append(after, l.score(a, 0))
		is = append(is, a)
		if l.winner != (Setup{}) || l.cfg.Goal == Fair {
			continue
		}
		l.answer = l.answerOf(l.searched)
		now, still := l.target()
		if ok = still; now != target {
			target = now
			before = nil
			after = nil
			was = nil
			is = nil
		}
	}
	if ok && len(before) >= 2 {
		return l.show(ctx, target, was, is)
	}
	return nil
}

// pair measures what there is and a setup, one after the other.
func (l *loop) pair(ctx context.Context, target Setup, reverse bool) (before, after *Trial, err error) {
	pair := []Trial{l.with(Setup{}, l.length(Setup{}), "proof: before"), l.with(target, l.length(target), "proof: after")}
	if reverse {
		slices.Reverse(pair)
	}
	for i := range pair {
		pair[i].inTurn = true
		t, err := l.tryFor(ctx, pair[i])
		if err != nil {
			return nil, nil, err
		}
		if !t.shared && l.searched != nil && t.Remedy == "" {
			l.searched.Observe(search.Trial{Automatic: t.Automatic, Window: t.Asked}, t.outcome())
		}
		pair[i] = t
		if t.Automatic {
			before = &pair[i]
		} else {
			after = &pair[i]
		}
	}
	return before, after, nil
}

// show enters what a proof's pairs tell of a setup.
func (l *loop) show(ctx context.Context, target Setup, was, is []*Trial) error {
	l.out.Gain = l.gain(goodputs(was), goodputs(is))
	l.shown = stats.PooledGain(l.scores(was), l.scores(is), 1-2*l.error(), l.pairNoise).Low > 1
	if ranks := l.byRanks(target); !l.shown && ranks.Low > 1 {
		gain := l.inTurn(target, confidence)
		l.shown = true
		l.out.Gain = &gain
	}
	switch l.cfg.Goal {
	case Latency:
		l.out.Delay = l.delay(was, is)
		l.shown = l.shown && l.out.Gain.Mid >= keeps
	case Fair:
		l.out.Others = othersOf(was, is, l.pairNoise)
		return l.alone(ctx, target)
	}
	return nil
}

// proven says that more pairs would tell little: the factor is known to 3 % and does not
// reach 1, or it is shown to be above 1, with the error that all looks together may have, by
// pairs enough.
func (l *loop) proven(before, after []float64) bool {
	if len(before) < 2 {
		return false
	}
	known := stats.PooledGain(before, after, confidence, l.pairNoise)
	if l.byRanks(l.winner).Low > 1 {
		return true
	}
	return known.Within(tight) && (known.Low > 1+repeatable || !better(before, after)) ||
		len(before) >= fewestProof && stats.PooledGain(before, after, 1-2*l.error()/mostPairs, l.pairNoise).Low >
			1+repeatable
}

// byRanks bounds the factor of a setup that a contest found, by the ranks of all runs in turn
// with what there is, contest and proof together, with the error that all rivals and looks may
// have.
func (l *loop) byRanks(target Setup) stats.Interval {
	pairs := len(l.turns(target))
	return l.inTurn(target, 1-2*l.error()*lookShare(pairs)/float64(max(len(l.out.Remedies), 1)))
}

// error is what a proof may err by, one way: where no contest picked what is proven, all of it is the proof's.
func (l *loop) error() float64 {
	if l.unpicked {
		return unpickedShare * search.ContestError
	}
	return search.ContestError
}

// unpickedShare is the part of a proof's error that is left where no contest errs beside it: with it all runs
// together hold search.ContestError where losses scatter and nothing helps.
const unpickedShare = 0.03

// firstPairs are the fewest whose ranks can show a gain: of five pairs one order in 252 has all of one setup's runs
// above all of the other's.
const firstPairs = 5

// lookShare is the part of an error that a look at the ranks of that many pairs may have. One pair more says little
// new, so the looks from the contest's third round to a sixteenth pair together have 0.96 of the error (simulated),
// not the sum of theirs; and what is clear from the first is shown with five pairs.
func lookShare(pairs int) float64 {
	const first, later = 0.4, 0.2
	switch {
	case pairs < firstPairs:
		return 0
	case pairs == firstPairs:
		return first
	}
	return later
}

// inTurn bounds the factor of a setup by all runs that were made in turn with what there is.
func (l *loop) inTurn(target Setup, confidence float64) stats.Interval {
	if target == (Setup{}) || l.cfg.Goal == Latency || l.cfg.Goal == Fair {
		return stats.Interval{Low: 0, High: math.Inf(1)}
	}
	return stats.Shift(l.turns(Setup{}), l.turns(target), confidence)
}

// turns are the goodputs of a setup's runs that were made in turn with others.
func (l *loop) turns(s Setup) []float64 {
	return goodputs(l.of(func(t *Trial) bool { return t.inTurn && t.Setup == s }))
}

// better says that what is proven seems to gain more than a window needs to be called enough.
func better(before, after []float64) bool {
	return stats.Gain(before, after, confidence).Mid > 1/search.Enough
}

// repeatable is by how much two runs of the loop may differ beyond their own noise: the
// window that each chooses reaches 98 % of the best or more.
const repeatable = 0.01

// gain is the factor as a second run of the loop would find it again.
func (l *loop) gain(before, after []float64) *stats.Interval {
	g := stats.PooledGain(before, after, confidence, l.pairNoise)
	return &stats.Interval{Low: g.Low / (1 + repeatable), Mid: g.Mid, High: g.High * (1 + repeatable)}
}

// conclude puts together what was found, after all steps or after the one that failed.
func (l *loop) conclude(failed bool) {
	out := &l.out
	out.Interrupted = out.Interrupted || failed
	automatic := l.of(func(t *Trial) bool { return t.Automatic && t.Remedy == "" })
	l.carries()
	out.Before = l.measured(automatic)
	if len(automatic) == 0 {
		return
	}
	out.Verdict = l.answer.Verdict
	out.Shown = l.answer.Shown
	out.Clipped = l.answer.Clipped
	if out.Verdict == "" {
		out.Verdict = search.Inconclusive
	}
	if !failed && out.Verdict == search.Inconclusive && (l.full(search.Nearly) || l.inVain() || l.nearly()) {
		out.Verdict = search.NoChange
	}
	if failed && !out.Shown {
		out.Verdict = search.Inconclusive
		out.Shown = false
	}
	if target, ok := l.target(); ok && (out.Shown || !failed) {
		l.change(target)
	}
	if out.Before.Interval.Mid <= nothing {
		out.Gain = nil // it is no factor
	}
	out.Disturbed = l.disturbed()
	if l.excuses() && !out.Interrupted {
		out.Reason = out.Disturbed.why(out.Direction)
		out.Verdict = search.Inconclusive
	} else {
		out.Reason = l.reason()
		out.Disturbed = nil
	}
	if l.cfg.FileSize > 0 {
		out.File = l.file()
	}
}

// change compares before with the chosen setup.
func (l *loop) change(target Setup) {
	out := &l.out
	chosen := Chosen{Setup: target}
	if target.Window > 0 {
		window := target.Window
		if window == l.answer.Asked {
			window = l.answer.Window // what came of the request
		}
		chosen = l.buffers(window)
		chosen.Setup = target
		chosen.Window = window
	}
	after := l.measured(l.of(func(t *Trial) bool { return t.Setup == target }))
	if len(after.Goodputs) == 0 {
		return
	}
	if out.Gain == nil {
		out.Gain = l.gain(out.Before.Goodputs, after.Goodputs)
	}
	out.Verdict = search.Change
	out.Chosen = &chosen
	out.After = &after
	unproven := out.Gain.Low <= 1 && !math.IsNaN(out.Gain.Mid) && len(after.Goodputs) > 1
	if l.winner != (Setup{}) || l.cfg.Goal == Fair {
		out.Shown = l.shown
		unproven = !l.shown
	}
	if !unproven {
		return
	}
	out.Verdict = search.Inconclusive
	out.Shown = false
	out.Chosen = nil
	out.After = nil
	if o := out.Others; o != nil {
		l.warn("%s was not shown to gain more than it takes: beside another flow it gives × %.2f and leaves that one × "+
			"%.2f, so nothing is recommended", target, out.Gain.Mid, o.Factor.Mid)
		return
	}
	l.warn("the proof of %s did not show a gain (× %.2f to × %.2f), so nothing is recommended", target, out.Gain.Low,
		out.Gain.High)
}

// of are the trials that a condition picks.
func (l *loop) of(pick func(*Trial) bool) (trials []*Trial) {
	for i := range l.out.Trials {
		if pick(&l.out.Trials[i]) {
			trials = append(trials, &l.out.Trials[i])
		}
	}
	return trials
}

// measured gathers what transfers of one kind gave. No interval reaches above what the
// path or their windows carry, where that is known.
func (l *loop) measured(trials []*Trial) (m Measured) {
	for _, t := range trials {
		m.Goodputs = append(m.Goodputs, t.Goodput)
	}
	m.Interval = stats.Estimate(m.Goodputs, confidence)
	if most := l.atMost(trials); !math.IsInf(m.Interval.High, 1) {
		m.Interval.High = min(m.Interval.High, max(most, m.Interval.Mid))
	}
	middle := math.Inf(1)
	for _, t := range commonest(trials) {
		if away := math.Abs(math.Log(t.Goodput / m.Interval.Mid)); away < middle {
			middle = away
			m.Typical = t.result
			m.Verdict = t.verdict
		}
	}
	if len(trials) > 0 {
		said := m.Verdict.Limiter
		l.settle(&m, trials[0].Setup)
		m.agree(trials, said)
	}
	return m
}

// file is how long a transfer of the stated size takes.
func (l *loop) file() *File {
	p := &l.out.Path
	takes := func(goodput float64) time.Duration {
		return model.TransferTime(float64(l.cfg.FileSize), goodput, p.RTT, p.MSS)
	}
	if l.out.Before.Interval.Mid <= nothing {
		return nil
	}
	f := &File{Bytes: l.cfg.FileSize, Before: takes(l.out.Before.Interval.Mid)}
	goodput := l.out.Before.Interval.Mid
	f.After = f.Before
	if l.out.Chosen != nil {
		goodput = l.out.After.Interval.Mid
		f.After = takes(goodput)
	}
	steady := p.RTT.Seconds() + float64(f.Bytes)*8/goodput
	if f.After.Seconds() >= tenth*steady {
		f.InitialWindow = model.LargerInitialWindow(f.Bytes, p.CapacityBps, p.RTT, p.MSS)
	}
	return f
}
