package tune

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// comparisonTime bounds the comparison of one candidate where no budget was stated. Of long runs shownRuns are made: if
// all of the candidate's exceed the level and none of the baseline's does, they show a gain.
const (
	comparisonTime = 90 * time.Second
	shownRuns      = 8
)

// exceedance is a comparison that is to show the gain of one candidate over the baseline.
type exceedance struct {
	setup Setup
	runs  *search.Exceedance // nil: not made
}

// shows reports that the comparison showed the gain of a setup.
func (e *exceedance) shows(s Setup) bool {
	return e.runs != nil && e.setup == s && e.runs.Outcome() == search.Change
}

// probability returns the probability with which the comparison makes the gain of a setup likely; 0 where it does not.
func (e *exceedance) probability(s Setup) float64 {
	if e.runs == nil || e.setup != s || e.runs.Outcome() != search.Inconclusive || e.runs.Chance() > search.LikelyChance {
		return 0
	}
	return 1 - e.runs.Chance()
}

// probabilityBelow returns the probability with which the compared candidate gives less than a factor; 0: nothing was
// compared.
func (e *exceedance) probabilityBelow(factor float64) float64 {
	if e.runs == nil {
		return 0
	}
	return e.runs.Below(factor)
}

// isOpen reports that the comparison ended before it was decided.
func (e *exceedance) isOpen() bool {
	return e.runs != nil && min(e.runs.Runs(0), e.runs.Runs(1)) > 0 && e.runs.Outcome() == search.Inconclusive &&
		e.probability(e.setup) == 0
}

// lossesScatterRuns reports that losses limit, so that single runs differ by their number and times.
func (c *comparison) lossesScatterRuns() bool {
	return c.limits.Limiter == verdict.Congestion && c.path.lossRounds > 0 && c.cfg.Goal.isThroughput()
}

// compareScattered compares the candidate that was the best in one run with the baseline, where losses scatter single
// runs. That run is not counted again: it was picked for its goodput. Where that candidate is ruled out, the next one
// follows that gave more.
func (c *comparison) compareScattered(ctx context.Context, candidates []Setup) (winner Setup, shown bool, err error) {
	tried, err := c.runEachOnce(ctx, candidates)
	if err != nil {
		return Setup{}, false, err
	}
	left := slices.DeleteFunc(slices.Clone(tried), c.keepsLosses)
	// Spared losses are worth a change without a gain. Only pairs of runs show that.
	before := retransmits(c.seen.baselineRuns())
	if slices.ContainsFunc(left, func(s Setup) bool { return sparesLosses(before, retransmits(c.seen.runsOf(s))) }) {
		wasteful := func(s Setup) bool { return wastes(c.seen.runsOf(s)) }
		clean := slices.DeleteFunc(slices.Clone(left), wasteful)
		left = slices.DeleteFunc(left, func(s Setup) bool { return !wasteful(s) })
		return c.measure(ctx, Setup{}, append(clean, left...), true)
	}
	today := 1.0
	for order := 1; ; order++ {
		// The baseline's runs so far may be lucky: they do not count in the first choice.
		leader, ok := c.preferred(left, today)
		if !ok {
			break
		}
		if c.budget.left(1).Time < max(comparisonTime, shownRuns*c.span(leader)) {
			c.budget.double()
		}
		if err := c.runExceedance(ctx, leader, order); err != nil {
			return Setup{}, false, err
		}
		outcome := c.exceedance.runs.Outcome()
		before := c.seen.measured(c.seen.baselineRuns())
		after := c.seen.measured(c.seen.runsOf(leader))
		if outcome == search.NoChange && asFast(&before, &after, c.exceedance.runs.Interval(confidence)) {
			outcome = search.Change // as the verification has to show
		}
		if outcome == search.Change || outcome == search.Inconclusive {
			c.recordExceedance(tried)
			found := outcome == search.Change || c.exceedance.probability(leader) > 0
			if !found {
				leader = Setup{}
			}
			return leader, found, nil
		}
		left = slices.DeleteFunc(left, func(s Setup) bool { return s == leader })
		today = stats.Median(goodputs(c.seen.baselineRuns()))
	}
	c.recordExceedance(tried)
	c.noRemedyHelped = c.exceedance.runs != nil
	return Setup{}, false, nil
}

// runEachOnce makes one run of each candidate until one carries all there is without many retransmissions: nothing is
// left to those that are preferred less. It returns those that ran.
func (c *comparison) runEachOnce(ctx context.Context, candidates []Setup) (tried []Setup, err error) {
	for _, s := range candidates {
		ran, err := c.runOnce(ctx, s)
		if err != nil {
			return nil, err
		}
		if !ran {
			continue
		}
		tried = append(tried, s)
		if !c.keepsLosses(s) && c.carriesAll(s) && !wastes(c.seen.runsOf(s)) {
			break
		}
	}
	return tried, nil
}

// keepsLosses reports that a window or a pacing rate left most of the baseline's losses. It can do nothing else for
// goodput where losses limit: the goodput of its run was chance.
func (r *runner) keepsLosses(s Setup) bool {
	runs := r.seen.runsOf(s)
	ratio, known := runs[len(runs)-1].retransmitRatio()
	removesLosses := s == Setup{Window: s.Window, PacingBps: s.PacingBps}
	left := max(threshold.Losing.Value, fewLosses*stats.Median(retransmitRatios(r.seen.baselineRuns())))
	return removesLosses && known && ratio > left
}

// runOnce makes one run of a candidate that has none of half the length yet. It returns false where there is none.
// Several connections get twice the length: each sends less, and takes longer to show its losses.
func (c *comparison) runOnce(ctx context.Context, s Setup) (bool, error) {
	length := c.length(s)
	if s.Streams > 1 {
		length *= 2
	}
	long := func(t *Trial) bool { return 2*t.Spec.Time >= length }
	if slices.ContainsFunc(c.seen.runsOf(s), long) {
		return true, nil
	}
	if !c.affords(length, 1) {
		return false, nil
	}
	_, err := c.try(ctx, c.with(s, length, Candidate))
	if err != nil && ctx.Err() == nil {
		c.notes.add(Statement{Code: NotTried, Setup: s, Err: err})
		return false, nil
	}
	return err == nil, err
}

// clearlyBelow is the share of the candidate's goodput that its runs are expected to exceed.
const clearlyBelow = 0.75 // ratio | recorded: runs of 2 s with bbr differ by a fifth

// level returns the goodput that separates a candidate's runs from the baseline's, by those before their comparison: in
// the middle between both or, if that is higher, clearly below the candidate's.
func (c *comparison) level(candidate Setup) float64 {
	with := stats.Median(goodputs(c.seen.runsOf(candidate)))
	today := c.seen.of(func(t *Trial) bool { return t.Automatic && 2*t.Spec.Time >= c.length(Setup{}) })
	if len(today) == 0 {
		today = c.seen.baselineRuns()
	}
	return math.Max(math.Sqrt(with*stats.Median(goodputs(today))), clearlyBelow*with)
}

// runExceedance makes the runs of the comparison until it is decided or its time is over.
func (c *comparison) runExceedance(ctx context.Context, candidate Setup, order int) error {
	e := search.NewExceedance(c.level(candidate), order, c.cfg.Seed)
	c.exceedance = exceedance{candidate, e}
	sides := []Setup{{}, candidate}
	purposes := []search.Purpose{ComparedWith, Candidate}
	start := c.budget.spent.Time
	for c.runsLeft(start) > 0 {
		i, more := e.Next()
		if !more {
			return nil
		}
		t := c.with(sides[i], c.length(sides[i]), purposes[i])
		t.inTurn = true
		t, err := c.try(ctx, t)
		if err != nil && i == 1 && ctx.Err() == nil {
			c.notes.add(Statement{Code: NotTried, Setup: sides[i], Err: err})
			return nil
		}
		if err != nil {
			return err
		}
		e.Observe(i, t.Goodput)
	}
	return nil
}

// runsLeft returns how many runs the comparison that began at a time may still make.
func (c *comparison) runsLeft(start time.Duration) int {
	each := max(c.span(Setup{}), c.span(c.exceedance.setup))
	left := c.budget.left(1)
	if c.budget.stated.Time == 0 {
		left.Time = min(left.Time, max(comparisonTime, shownRuns*each)-(c.budget.spent.Time-start))
	}
	bytes := c.path.CapacityBps / 8 * each.Seconds()
	return max(0, min(int(left.Time/each), int(float64(left.Bytes)/bytes)))
}

// recordExceedance enters what the single runs and the comparison showed of each candidate.
func (c *comparison) recordExceedance(tried []Setup) {
	today := stats.Typical(goodputs(c.seen.baselineRuns()))
	for _, s := range tried {
		runs := c.seen.runsOf(s)
		r := singleRun(s, runs[len(runs)-1], today)
		r.needs = 2 * fewestProof * (c.span(Setup{}) + c.span(s))
		if e := c.exceedance; e.setup == s && e.runs != nil && e.runs.Runs(1) > 0 {
			r = c.exceedanceRemedy()
		}
		c.remedies = append(c.remedies, r)
	}
}

// exceedanceRemedy returns what the comparison showed of its candidate.
func (c *comparison) exceedanceRemedy() Remedy {
	e := c.exceedance
	runs := c.seen.runsOf(e.setup)
	r := singleRun(e.setup, runs[0], 1)
	r.Goodput = stats.Typical(c.seen.turns(e.setup)) // the gain is of these runs
	r.Retransmits = retransmits(runs)
	r.Runs = e.runs.Runs(1)
	r.BaselineRuns = e.runs.Runs(0)
	r.Gain = e.runs.Gain()
	r.more = e.runs.Needs()
	r.needs = time.Duration(r.more) * max(c.span(Setup{}), c.span(e.setup))
	return r
}
