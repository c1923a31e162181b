package tune

import (
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// observations are the transfers so far, and the conclusions from all of them.
type observations struct {
	trials []Trial
	path   *pathModel
	goal   Goal
	best   float64 // the largest goodput, in bit/s
	// longRun is the rate in bit/s to which leaveOutBuckets reduces goodputs at most, and bucket the bytes by which it
	// does at most; 0: it does not.
	longRun, bucket float64
}

// of returns the trials that a condition picks.
func (o *observations) of(pick func(*Trial) bool) (trials []*Trial) {
	for i := range o.trials {
		if pick(&o.trials[i]) {
			trials = append(trials, &o.trials[i])
		}
	}
	return trials
}

// baselineRuns returns the trials with the systems' defaults.
func (o *observations) baselineRuns() []*Trial {
	return o.of(func(t *Trial) bool { return t.Automatic })
}

// runsOf returns the trials with a setup.
func (o *observations) runsOf(s Setup) []*Trial {
	return o.of(func(t *Trial) bool { return t.Setup == s })
}

// lossBlindRuns returns the trials of one connection under lossBlind that nothing paced.
func (o *observations) lossBlindRuns() []*Trial {
	return o.of(func(t *Trial) bool {
		return t.Setup.Congestion == lossBlind && t.Setup.Streams < 2 && t.Setup.PacingBps == 0
	})
}

// turns returns the goodputs of a setup's runs that were made in turn with others.
func (o *observations) turns(s Setup) []float64 {
	return goodputs(o.of(func(t *Trial) bool { return t.inTurn && t.Setup == s }))
}

// measured summarizes runs of one setup. No interval reaches above what the path or their windows carry, where known.
func (o *observations) measured(trials []*Trial) (m Measured) {
	m.Goodputs = goodputs(trials)
	m.Retransmits = retransmits(trials)
	m.Interval = stats.Estimate(m.Goodputs, confidence)
	if most := o.atMost(trials); !math.IsInf(m.Interval.High, 1) {
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
		o.settle(&m, trials[0].Setup)
		m.agree(trials, said)
	}
	return m
}

// sparesLosses reports that the fewer retransmissions of runs after a change alone are worth it.
func sparesLosses(before, after *float64) bool {
	return before != nil && after != nil && search.SparesLosses(*after, *before)
}

// wastes reports that runs retransmit so much that fewer retransmissions alone are worth a change.
func wastes(runs []*Trial) bool {
	none := 0.0
	return sparesLosses(retransmits(runs), &none)
}

// asFast reports that runs after a change that spares losses were shown to keep nearly all of the goodput before. It
// judges the search's proof and that of a host's changes.
func asFast(before, after *Measured, gain stats.Interval) bool {
	return sparesLosses(before.Retransmits, after.Retransmits) && gain.Mid >= keeps && gain.Low >= keepsShown
}

// policed reports that a transfer's verdict named a policer.
func (o *observations) policed() bool {
	return slices.ContainsFunc(o.trials, func(t Trial) bool { return t.verdict.Subtype == verdict.Policer })
}

// drains returns how long a sender paced at a rate in bit/s has to send before a bucket is empty that lets as much
// through at first as the baseline's runs had: for so long no loss shows that the rate exceeds the path's. Unpaced runs
// that lost emptied theirs, so their rates need no proof, and rates too near to them have none: false. From other rates
// the path's may differ by as little as belowTheLine leaves.
func (o *observations) drains(rate float64) (wait time.Duration, ok bool) {
	base := o.withoutBucket()
	if base == 0 || rate <= base {
		return 0, true
	}
	bucket := 8 * stats.Median(each(o.baselineRuns(), func(t *Trial) float64 { return t.excess(base/8, false) }))
	seconds := func(excess float64) time.Duration {
		return time.Duration(min(drained*bucket/excess, longest.Seconds()) * float64(time.Second))
	}
	return min(longestDrain, seconds((1-belowTheLine)*rate)), seconds(rate-base) <= longestDrain
}

// nothing is the goodput, in bit/s, of a transfer that delivered no data.
const nothing = 1

// isBlackHole reports that nothing of the baseline's transfers arrives.
func (o *observations) isBlackHole() bool {
	return len(o.trials) > 0 && o.trials[0].Automatic && o.trials[0].Goodput <= nothing
}

// enoughToday is the least number of baseline runs that is compared with the path's capacity.
const enoughToday = 3

// linkIsFull reports that enough baseline runs came so near to the capacity that nothing else can give much more.
func (o *observations) linkIsFull() bool {
	return len(o.baselineRuns()) >= enoughToday && o.full(search.Nearly)
}

// full reports that the link limits and two of three baseline runs reach a share of the most it carried: other windows
// cannot be better by more than the rest, however much runs scatter.
func (o *observations) full(share float64) bool {
	if o.path.AtLeast || !o.goal.isThroughput() || o.isBlackHole() {
		return false
	}
	today := o.baselineRuns()
	return len(today) > 1 && 3*o.reach(share) >= 2*len(today) &&
		o.measured(today).Verdict.Limiter == verdict.Bottleneck
}

// reach returns how many baseline runs reach a share of the most that the path carried.
func (o *observations) reach(share float64) (runs int) {
	bps, _ := o.mostCarried()
	bps = max(bps, o.path.CapacityBps)
	for _, t := range o.baselineRuns() {
		if t.Goodput >= share*bps {
			runs++
		}
	}
	return runs
}

// windowsMatter says whether the model leaves room for another window to help: one was
// seen to, the path may carry more than any window let it, or nobody knows what limits.
func (o *observations) windowsMatter() bool {
	today := o.baselineRuns()
	if o.acksLimit() {
		return false // of the window that fills the way forth nothing is known
	}
	if o.path.AtLeast {
		return true
	}
	blames := func(t *Trial) bool { return blamed(&t.verdict) != "" }
	if o.lossIsLeft(today) && !slices.ContainsFunc(today, blames) && !o.reaches(o.path.Window) {
		return false // loss keeps it below what any window would
	}
	for _, t := range today {
		if t.Limiter != verdict.Congestion && t.Limiter != verdict.MTUBlackHole {
			return true
		}
	}
	// One that loss limits too is only luckier.
	faster := o.of(func(t *Trial) bool {
		return t.Remedy == "" && !t.Automatic && t.Limiter != verdict.Congestion &&
			t.Goodput > farFaster*slices.Max(goodputs(today))
	})
	return len(faster) > 0
}

// acksLimit says that acknowledgements' way back is what limits what there is.
func (o *observations) acksLimit() bool {
	today := o.baselineRuns()
	return len(today) > 0 && !slices.ContainsFunc(today, func(t *Trial) bool { return t.Limiter != verdict.AckPath })
}

// lossIsLeft says that loss keeps transfers well below what the path was seen to carry.
func (o *observations) lossIsLeft(trials []*Trial) bool {
	lossy := slices.ContainsFunc(trials, func(t *Trial) bool { return !t.Lossless })
	return lossy && stats.Median(goodputs(trials))*tenth < o.path.CapacityBps
}

// reaches reports that the baseline has about a window in flight: where loss keeps it well below, a clamp cannot help.
func (o *observations) reaches(window int) bool {
	return slices.ContainsFunc(o.trials, func(t Trial) bool {
		return t.Automatic && (t.Effective == 0 || tenth*float64(t.Effective) >= float64(window))
	})
}

// mayBeFull says that a verdict names a full link, or leaves it open among others.
func mayBeFull(v *verdict.Verdict) bool {
	return v.Limiter == verdict.Bottleneck || slices.Contains(v.Candidates, verdict.Bottleneck)
}
