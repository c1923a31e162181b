package tune

import (
	"context"
	"math"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/record"
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

// verification proves the gain of what was found.
type verification struct {
	*runner
	windows  *windowSearch
	compared *comparison
	gain     *stats.Interval // of after over before; nil: there was no proof
	delay    *record.TuneDelay
	others   *record.TuneOthers
	shown    bool // a gain was shown, with search.ComparisonError, or asFast
	// probability is that of a gain that is likely, not shown; 0: none is.
	probability float64
	asFast      bool // no gain was shown, but the baseline's goodput with clearly fewer retransmissions
}

// target is the setup whose gain is to be proven; false where nothing is to be changed.
func (v *verification) target() (Setup, bool) {
	switch {
	case v.compared.winner != Setup{}:
		return v.compared.winner, true
	case v.windows.answer.Verdict == search.Change:
		return Setup{Window: v.windows.answer.Asked}, true
	}
	return Setup{}, false
}

// verify measures before and after in turn, A B B A, until the factor is known well enough or the budget ends. Its
// measurements of windows count in the search too: where another window turns out to be the one to choose, the
// verification starts again with that.
func (v *verification) verify(ctx context.Context) error {
	target, ok := v.target()
	compared := &v.compared.exceedance
	v.probability = compared.probability(target)
	v.shown = compared.shows(target)
	if ok && (v.shown || v.probability > 0) {
		gain := compared.runs.Gain()
		v.gain = &stats.Interval{Low: gain.Low / (1 + repeatable), Mid: gain.Mid, High: gain.High * (1 + repeatable)}
		return nil
	}
	if v.compared.pairNoise.DOF == 0 { // no comparison measured it
		v.compared.pairNoise = v.windows.answer.Noise
		v.compared.pairNoise.Dev *= math.Sqrt2
	}
	var before, after []*Trial
	for ok && len(before) < mostPairs && !v.proven(v.scores(before), v.scores(after)) &&
		(v.affords(v.span(Setup{})+v.span(target), 1) ||
			(better(v.scores(before), v.scores(after)) || v.sparesLosses(target)) && v.budget.double()) {
		b, a, err := v.pair(ctx, target, len(before)%2 == 1)
		if err != nil {
			return err
		}
		before = append(before, b)
		after = append(after, a)
		if v.compared.winner != (Setup{}) || v.cfg.Goal == Fair {
			continue
		}
		v.windows.answer = v.windows.answerOf(v.windows.searched)
		now, still := v.target()
		if ok = still; now != target {
			target = now
			before = nil
			after = nil
		}
	}
	if ok && len(before) >= 2 {
		return v.show(ctx, target, before, after)
	}
	return nil
}

// pair measures what there is and a setup, one after the other.
func (v *verification) pair(ctx context.Context, target Setup, reverse bool) (before, after *Trial, err error) {
	pair := []Trial{v.with(Setup{}, v.length(Setup{}), ProofBefore), v.with(target, v.length(target), ProofAfter)}
	if reverse {
		slices.Reverse(pair)
	}
	for i := range pair {
		pair[i].inTurn = true
		t, err := v.tryFor(ctx, pair[i])
		if err != nil {
			return nil, nil, err
		}
		if !t.shared && v.windows.searched != nil && t.Remedy == "" {
			v.windows.searched.Observe(search.Trial{Automatic: t.Automatic, Window: t.Asked}, t.outcome())
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

// show enters the result of a proof's pairs.
func (v *verification) show(ctx context.Context, target Setup, before, after []*Trial) error {
	v.gain = v.gainOf(goodputs(before), goodputs(after))
	v.shown = stats.PooledGain(v.scores(before), v.scores(after), 1-2*v.errorRate(), v.compared.pairNoise).Low > 1
	if ranks := v.byRanks(target); !v.shown && ranks.Low > 1 {
		gain := v.inTurn(target, confidence)
		v.shown = true
		v.gain = &gain
	}
	switch v.cfg.Goal {
	case Throughput, "":
		b := v.seen.measured(before)
		a := v.seen.measured(after)
		v.asFast = !v.shown && asFast(&b, &a, *v.gain)
		v.shown = v.shown || v.asFast
	case Latency:
		v.delay = v.delayOf(before, after)
		v.shown = v.shown && v.gain.Mid >= keeps
	case Fair:
		v.others = othersOf(before, after, v.compared.pairNoise)
		return v.alone(ctx, target)
	}
	return nil
}

// proven reports that more pairs would show little: the factor is known to 3 % and does not reach 1, or is shown to be
// above 1 by enough pairs, with the error of all looks together.
func (v *verification) proven(before, after []float64) bool {
	if len(before) < 2 {
		return false
	}
	known := stats.PooledGain(before, after, confidence, v.compared.pairNoise)
	if v.byRanks(v.compared.winner).Low > 1 {
		return true
	}
	return known.Within(tight) && (known.Low > 1+repeatable || !better(before, after)) ||
		len(before) >= fewestProof && stats.PooledGain(before, after, 1-2*v.errorRate()/mostPairs, v.compared.pairNoise).Low >
			1+repeatable
}

// byRanks bounds a setup's factor by the ranks of all its runs in turn with the baseline, with the error that all
// candidates and looks may have.
func (v *verification) byRanks(target Setup) stats.Interval {
	pairs := len(v.seen.turns(target))
	return v.inTurn(target, 1-2*v.errorRate()*lookShare(pairs)/float64(max(len(v.compared.remedies), 1)))
}

// errorRate returns the one-sided error that the verification may have.
func (v *verification) errorRate() float64 {
	if v.compared.leaderUnverified {
		return unverifiedShare * search.ComparisonError
	}
	return search.ComparisonError
}

// unverifiedShare is the part of a proof's error that is left where no comparison was decided: with it all runs
// together hold search.ComparisonError where losses scatter and nothing helps.
const unverifiedShare = 0.03

// firstPairs are the fewest whose ranks can show a gain: of five pairs one order in 252 has all of one setup's runs
// above all of the other's.
const firstPairs = 5

// lookShare is the part of an error that a look at the ranks of that many pairs may have. One pair more says little
// new, so the looks from the comparison's third round to a sixteenth pair together have 0.96 of the error (simulated),
// not the sum of theirs; and a clear difference is shown with five pairs.
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
func (v *verification) inTurn(target Setup, confidence float64) stats.Interval {
	if target == (Setup{}) || v.cfg.Goal == Latency || v.cfg.Goal == Fair {
		return stats.Interval{Low: 0, High: math.Inf(1)}
	}
	return stats.Shift(v.seen.turns(Setup{}), v.seen.turns(target), confidence)
}

// better says that what is proven seems to gain more than a window needs to be called enough.
func better(before, after []float64) bool {
	return stats.Gain(before, after, confidence).Mid > 1/search.Enough
}

// sparesLosses reports that the setup's fewer retransmissions alone may be worth the change.
func (v *verification) sparesLosses(target Setup) bool {
	return v.cfg.Goal.isThroughput() &&
		sparesLosses(retransmits(v.seen.baselineRuns()), retransmits(v.seen.runsOf(target)))
}

// gainOf is the factor as a second run of the loop would find it again.
func (v *verification) gainOf(before, after []float64) *stats.Interval {
	g := stats.PooledGain(before, after, confidence, v.compared.pairNoise)
	return &stats.Interval{Low: g.Low / (1 + repeatable), Mid: g.Mid, High: g.High * (1 + repeatable)}
}

// alone measures the proven setup once without the other flow.
func (v *verification) alone(ctx context.Context, target Setup) error {
	if len(v.seen.runsOf(target)) > 0 {
		return nil
	}
	_, err := v.try(ctx, v.with(target, v.length(target), Alone))
	return err
}
