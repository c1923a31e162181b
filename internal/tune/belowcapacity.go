package tune

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// belowCapacity looks for a setup that keeps the rate, or the bytes in flight, at or below what the path carries.
// It serves a path whose queue is far shorter than its BDP and a policer, which lose segments before any delay shows.
type belowCapacity struct {
	*runner
	limits verdict.Verdict // of the baseline
	probed []Setup         // each was measured in one run
	best   Setup           // to be compared first; zero: none seems to help
	clean  *Trial          // the fastest paced run without loss; nil: none
}

const (
	// mostPacedProbes bounds the runs that look for a pacing rate.
	mostPacedProbes = 5
	// probeBudget is the share of the budget that the probes may begin their last run in.
	probeBudget = 0.5
)

// lacksQueue reports that the baseline loses segments though hardly any queueing delay shows, and that nothing else is
// known to limit it.
func (b *belowCapacity) lacksQueue() bool {
	v := &b.limits
	if v.Subtype == verdict.Policer {
		return true
	}
	open := v.Limiter == verdict.Unknown || v.Limiter == verdict.Mixed
	if v.Limiter != verdict.Congestion && !open || v.Subtype == verdict.Reordering {
		return false
	}
	today := b.seen.baselineRuns()
	var above []float64
	for _, t := range today {
		if least := t.result.MinRTT(); least > 0 {
			above = append(above, float64(t.result.MeanRTT())/float64(least))
		}
	}
	ratio := stats.Median(retransmitRatios(today))
	most := 1 + threshold.StandingQueue.Value
	if ratio >= threshold.PolicedLoss.Value { // a queue that loses so much is a long one
		most = 1 + threshold.LongQueue.Value
	}
	return len(above) > 0 && stats.Median(above) < most && ratio > threshold.Losing.Value
}

// probe measures pacing rates and windows, one run each, and leaves the best of them.
func (b *belowCapacity) probe(ctx context.Context) error {
	if err := b.measureAfterLosses(ctx); err != nil {
		return err
	}
	if err := b.probePacing(ctx); err != nil {
		return err
	}
	today := b.seen.measured(b.seen.baselineRuns())
	if b.refine(&today); today.Verdict.Subtype == verdict.Policer {
		paced := 0.0
		if b.clean != nil {
			paced = b.clean.Goodput
		}
		b.seen.leaveOutBuckets(paced)
	}
	random := b.lossIsRandom()
	for _, share := range []float64{1, belowBDP} {
		segments := int(share*float64(b.path.Window)) / b.path.MSS / 2 * 2
		s := Setup{Window: segments * b.path.MSS}
		if s.Window < 2*b.path.MSS || b.path.AtLeast || random && !b.seen.reaches(s.Window) {
			continue
		}
		if _, err := b.measure(ctx, s); err != nil {
			return err
		}
	}
	b.choose()
	return nil
}

// lossIsRandom reports that the loss does not depend on the rate: a control that ignores loss carried far more than the
// baseline and retransmitted no larger share, or a sender paced below that rate retransmitted no smaller one.
func (b *belowCapacity) lossIsRandom() bool {
	today := stats.Median(goodputs(b.seen.baselineRuns()))
	for _, t := range b.seen.lossBlindRuns() {
		if _, known := t.retransmitRatio(); !known || t.Goodput < farFaster*today {
			continue
		}
		pacedInVain := func(s Setup) bool { return s.PacingBps > 0 && s.PacingBps <= t.Goodput && b.keepsLosses(s) }
		if b.losesAsBaseline(t) || slices.ContainsFunc(b.probed, pacedInVain) {
			return true
		}
	}
	return false
}

// measure makes one run of a setup, long enough for losses to show. It returns nil where the peer cannot carry it out
// or the budget is spent.
func (b *belowCapacity) measure(ctx context.Context, s Setup) (*Trial, error) {
	cfg := b.searchConfig()
	cfg.Rounds = min(max(cfg.Rounds, search.FewRounds), search.LossyRounds)
	drain, provable := b.seen.drains(s.PacingBps)
	length := cfg.Length(s.Window) + drain
	spent := func() bool { return b.isSpent(probeBudget) || b.budget.Time > 0 && !b.affords(length, 1) }
	open := drain > 0 || b.clean == nil
	if !b.can(s) || !provable || spent() && !(open && b.budget.double() && !spent()) {
		return nil, nil
	}
	t, err := b.try(ctx, b.with(s, length, BelowCapacity))
	switch {
	case ctx.Err() != nil:
		return nil, err
	case err != nil:
		b.notes.add(Statement{Code: NotTried, Setup: s, Err: err})
		return nil, nil
	}
	b.probed = append(b.probed, s)
	return &t, nil
}

// probePacing brackets the largest rate that the path carries without loss. Where loss is random, one run shows that
// pacing does not help.
func (b *belowCapacity) probePacing(ctx context.Context) error {
	p := b.path
	bracket := pacingBracket{rate: belowTheLine * b.seen.paceable(&b.limits), floor: pacingFloor * b.seen.best}
	if steady := policedBps(&b.limits); steady > 0 {
		bracket.floor = min(bracket.rate, steady)
		bracket.lost = steady / threshold.PolicedSteady.Value
	}
	tooFast := 0.0 // the lowest rate at which the path dropped much
	for range mostPacedProbes {
		rate := bracket.rate
		t, err := b.measure(ctx, Setup{PacingBps: math.Round(rate)})
		if err != nil {
			return err
		}
		if t == nil {
			break
		}
		ratio, known := t.retransmitRatio()
		clean := known && ratio <= threshold.PacedClean.Value && t.Goodput >= keepsPace*rate
		if clean && t.Goodput > p.CapacityBps {
			p.learn(t)
		}
		if clean && (b.clean == nil || t.Goodput > b.clean.Goodput) {
			b.clean = t
		}
		if known && ratio > threshold.PacedClean.Value {
			tooFast = rate
		}
		if !bracket.observe(clean) || b.lossIsRandom() {
			break
		}
		// Pacing that gives no more than today's losses leaves is still above a policer's rate.
		if base := b.seen.withoutBucket(); bracket.clean == 0 && t.Goodput < tenth*base {
			bracket.floor = min(bracket.floor, belowTheLine*base)
			bracket.rate = bracket.floor
		}
	}
	if bracket.clean > 0 && tooFast > 0 && p.CapacityBps > tooFast {
		p.CapacityBps = tooFast
		p.size(b.seen.trials[len(b.seen.trials)-1].result)
	}
	return b.keepMargin(ctx)
}

// keepMargin replaces a clean rate that a bucket may have let through by one as far below it as that may hide.
func (b *belowCapacity) keepMargin(ctx context.Context) error {
	if b.clean == nil {
		return nil
	}
	proven := b.clean.Setup
	if drain, _ := b.seen.drains(proven.PacingBps); drain == 0 {
		return nil
	}
	t, err := b.measure(ctx, Setup{PacingBps: math.Round(belowTheLine * proven.PacingBps)})
	if t == nil || err != nil {
		return err
	}
	b.clean = t
	b.probed = slices.DeleteFunc(b.probed, func(s Setup) bool { return s == proven })
	return nil
}

// pacingBracket looks for the largest pacing rate that loses nothing.
type pacingBracket struct {
	rate        float64 // to try
	floor       float64 // the lowest rate to try
	clean, lost float64 // the largest rate without loss and the smallest one with; 0: none
}

const (
	// pacingGap is the ratio between the lost and the clean rate at which the bracket is narrow enough, and the first
	// step above a clean rate: the clean rate is within the 10 % of the fastest candidate that less loss is worth
	// (search.Comparison). pacingClimb is the ratio of later steps, pacingFall the least one below a lost rate.
	pacingGap, pacingClimb, pacingFall = 1.08, 2, 1.15
)

// observe takes whether the rate was carried without loss, and sets the next one. It returns false at the end.
func (p *pacingBracket) observe(clean bool) (more bool) {
	first := p.clean == 0
	if clean {
		p.clean = p.rate
	} else {
		p.lost = p.rate
	}
	switch {
	case p.lost == 0 && first:
		p.rate *= pacingGap
	case p.lost == 0:
		p.rate *= pacingClimb
	case p.clean == 0 && p.rate <= p.floor:
		return false
	case p.clean == 0:
		p.rate = max(p.floor, min(p.rate/pacingFall, math.Sqrt(p.rate*p.floor)))
	case p.lost <= 1.001*pacingGap*p.clean:
		return false
	default:
		p.rate = math.Sqrt(p.clean * p.lost)
	}
	return true
}

// choose leaves the probed setup to compare first, if one seems to help: of the paced ones the fastest without loss.
func (b *belowCapacity) choose() {
	setups := slices.DeleteFunc(slices.Clone(b.probed), func(s Setup) bool {
		return b.clean != nil && s.PacingBps > 0 && s != b.clean.Setup
	})
	b.best, _ = b.preferred(setups, stats.Median(goodputs(b.seen.baselineRuns())))
}

// preferred returns the setup that is chosen by one run of each; false where none gives enough more than today's
// goodput in bit/s to matter.
func (r *runner) preferred(setups []Setup, today float64) (Setup, bool) {
	scores := map[int]float64{0: today}
	compared := search.NewComparison(len(setups), 1, r.seen.expectedNoise(), r.cfg.Seed)
	if ratio := retransmits(r.seen.baselineRuns()); ratio != nil {
		compared.Retransmits(0, *ratio)
	}
	for i, s := range setups {
		runs := r.seen.runsOf(s)
		t := runs[len(runs)-1]
		scores[i+1] = t.Goodput
		if ratio, known := t.retransmitRatio(); known {
			compared.Retransmits(i+1, ratio)
		}
	}
	compared.Observe(scores)
	if i, ok := compared.Preferred(); ok {
		return setups[i-1], true
	}
	return Setup{}, false
}

// paced returns the control that ignores losses, paced below the path's rate, if it alone loses more than the
// baseline. It finds the rate by overfilling the queue, and a queue shorter than its BDP drops much of that. Where the
// baseline's control loses nothing at such a rate, no losses are left to ignore.
func (b *belowCapacity) paced(controls []Setup) (all []Setup) {
	if b.clean != nil {
		return nil
	}
	rate := belowTheLine * b.seen.paceable(&b.limits)
	blind := b.seen.lossBlindRuns()
	if rate <= 0 || len(blind) == 0 || b.losesAsBaseline(blind[len(blind)-1]) {
		return nil
	}
	for _, s := range controls {
		if s.Congestion == lossBlind {
			s.PacingBps = math.Round(rate)
			all = append(all, s)
		}
	}
	return all
}

// losesAsBaseline reports that a run retransmitted no larger share than the baseline, or that its share is not known.
func (b *belowCapacity) losesAsBaseline(t *Trial) bool {
	ratio, known := t.retransmitRatio()
	return !known || ratio <= sameLoss*stats.Median(retransmitRatios(b.seen.baselineRuns()))+sameLossNoise
}

// remedies returns the probed setups that change more than a window, with what their one run gave.
func (b *belowCapacity) remedies() (all []Remedy) {
	today := stats.Typical(goodputs(b.seen.baselineRuns()))
	for _, s := range b.probed {
		runs := b.seen.runsOf(s)
		if s.besides() == "" || len(runs) == 0 {
			continue
		}
		r := singleRun(s, runs[0], today)
		r.needs = 2 * fewestProof * (b.span(Setup{}) + b.span(s))
		all = append(all, r)
	}
	return all
}

// singleRun returns what one run of a setup gave against the baseline's median in bit/s.
func singleRun(s Setup, t *Trial, today float64) Remedy {
	return Remedy{Name: s.String(), Setup: s, Goodput: t.Goodput, Runs: 1, Spec: t.Spec,
		Gain: stats.Interval{Mid: t.Goodput / today, High: math.Inf(1)}, Retransmits: t.RetransmitRatio()}
}

// refine names a policer by a paced run: the baseline loses much, keeps most of the rate and builds no queue before it
// loses, and just below that rate nothing is lost. Where a queue shows or less of the rate is left, the kind stays
// open.
func (b *belowCapacity) refine(m *Measured) {
	v := &m.Verdict
	open := v.Limiter == verdict.Unknown || v.Limiter == verdict.Mixed
	if b.clean == nil || v.Limiter != verdict.Congestion && !open || v.Subtype != "" {
		return
	}
	today := b.seen.baselineRuns()
	ratio := stats.Median(retransmitRatios(today))
	paced, _ := b.clean.retransmitRatio()
	queue, known := queueAtLoss(today)
	if !(ratio >= threshold.PolicedLoss.Value) || !known {
		return
	}
	evidence := verdict.Evidence{Limiter: verdict.Congestion, Code: verdict.PacedLosesNothing, Values: verdict.Values{
		"paced_bps": b.clean.Setup.PacingBps, "goodput_bps": b.clean.Goodput, "paced_ratio": paced,
		"retransmitted_ratio": ratio, "queue_s": queue.Seconds()}}
	v.Evidence = append([]verdict.Evidence{evidence}, v.Evidence...)
	queueBits := threshold.QueueBeforeLoss.Value * threshold.PacketBytes.Value * 8
	formed := threshold.QueueFormed.Value * queueBits / b.clean.Goodput
	formed = max(formed, threshold.QueueResolvable.Value*b.clean.result.MinRTT().Seconds())
	unpaced := min(m.Interval.Mid, cmp.Or(b.seen.withoutBucket(), m.Interval.Mid))
	if queue.Seconds() > formed || unpaced < threshold.PolicedSteady.Value*b.clean.Goodput ||
		unpaced > tenth*b.clean.Goodput {
		return
	}
	v.Shares = attribute(v.Shares, append(slices.Clone(v.Candidates), v.Limiter), verdict.Congestion)
	v.Limiter = verdict.Congestion
	v.Subtype = verdict.Policer
	v.Candidates = nil
	v.Confidence = verdict.Medium
	// Bursts between losses do not show the rate of a policer.
	if most, _ := b.seen.mostCarried(); b.path.CapacityBps > max(most, b.clean.Goodput) {
		b.path.CapacityBps = max(most, b.clean.Goodput)
		b.path.size(b.clean.result)
	}
}
