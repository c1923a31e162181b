package tune

import (
	"context"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

const (
	// unpairedTime bounds a comparison of unequal numbers of runs where no budget was stated.
	unpairedTime = 90 * time.Second
	// minUnpaired are the fewest runs, two of each side, that show a scatter.
	minUnpaired = 4
)

// unpaired is a comparison that is to prove the gain of one candidate over the baseline. The two may have different
// numbers of runs.
type unpaired struct {
	setup Setup
	runs  *search.Unpaired // nil: not made
}

// shows reports that the comparison proved the gain of a setup.
func (u *unpaired) shows(s Setup) bool {
	return u.runs != nil && u.setup == s && u.runs.Outcome() == search.Change
}

// isOpen reports that the comparison ended before it was decided.
func (u *unpaired) isOpen() bool {
	return u.runs != nil && min(u.runs.Runs(0), u.runs.Runs(1)) > 0 && u.runs.Outcome() == search.Inconclusive
}

// lossesScatterRuns reports that losses limit, and that runs have so few that their number differs from run to run.
func (c *comparison) lossesScatterRuns() bool {
	return c.limits.Limiter == verdict.Congestion && c.path.lossRounds > search.LossyRounds &&
		c.cfg.Goal.isThroughput()
}

// compareUnpaired compares the candidate that was the best in one run with the baseline, where losses scatter single
// runs. That run is not counted again: it was picked for what it gave. Where that one is ruled out, the others are
// compared in rounds.
func (c *comparison) compareUnpaired(ctx context.Context, candidates []Setup) (winner Setup, shown bool, err error) {
	tried, err := c.runEachOnce(ctx, candidates)
	if err != nil {
		return Setup{}, false, err
	}
	// The baseline's runs so far may be lucky: they do not count in the choice.
	leader, ok := c.preferred(slices.DeleteFunc(slices.Clone(tried), c.keepsLosses), 1)
	if !ok {
		return c.measure(ctx, Setup{}, candidates, true)
	}
	if c.budget.left(1).Time < unpairedTime {
		c.budget.double()
	}
	c.unpaired = unpaired{leader, search.NewUnpaired(c.seen.expectedNoise(), c.cfg.Seed)}
	if err := c.runUnpaired(ctx); err != nil {
		return Setup{}, false, err
	}
	others := slices.DeleteFunc(slices.Clone(candidates), func(s Setup) bool { return s == leader })
	outcome := c.unpaired.runs.Outcome()
	before := c.seen.measured(c.seen.baselineRuns())
	after := c.seen.measured(c.seen.runsOf(leader))
	if outcome == search.NoChange && asFast(&before, &after, c.unpaired.runs.Interval(confidence)) {
		outcome = search.Change // as the verification has to show
	}
	if outcome == search.NoChange && len(others) > 0 {
		c.recordUnpaired([]Setup{leader})
		return c.measure(ctx, Setup{}, others, true)
	}
	c.recordUnpaired(tried)
	c.noRemedyHelped = outcome == search.NoChange
	if outcome != search.Change {
		return Setup{}, false, nil
	}
	return leader, true, nil
}

// runEachOnce makes one run of each candidate until one carries all there is: nothing is left to those that are
// preferred less. It returns those that ran.
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
		if !c.keepsLosses(s) && c.carriesAll(s) {
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
func (c *comparison) runOnce(ctx context.Context, s Setup) (bool, error) {
	long := func(t *Trial) bool { return 2*t.Spec.Time >= c.length(s) }
	if slices.ContainsFunc(c.seen.runsOf(s), long) {
		return true, nil
	}
	if !c.affords(c.span(s), 1) {
		return false, nil
	}
	_, err := c.try(ctx, c.with(s, c.length(s), Candidate))
	if err != nil && ctx.Err() == nil {
		c.notes.add(Statement{Code: NotTried, Setup: s, Err: err})
		return false, nil
	}
	return err == nil, err
}

// runUnpaired makes the runs of the comparison until it is decided or its time is over.
func (c *comparison) runUnpaired(ctx context.Context) error {
	sides := []Setup{{}, c.unpaired.setup}
	purposes := []search.Purpose{ComparedWith, Candidate}
	start := c.budget.spent.Time
	u := c.unpaired.runs
	for first := true; ; first = false {
		left := c.runsLeft(start)
		if first && left < minUnpaired {
			return nil
		}
		i, more := u.Next(left)
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
		u.Observe(i, t.Goodput)
	}
}

// runsLeft returns how many runs the comparison that began at a time may still make.
func (c *comparison) runsLeft(start time.Duration) int {
	each := max(c.span(Setup{}), c.span(c.unpaired.setup))
	left := c.budget.left(1)
	if c.budget.stated.Time == 0 {
		left.Time = min(left.Time, unpairedTime-(c.budget.spent.Time-start))
	}
	bytes := c.path.CapacityBps / 8 * each.Seconds()
	return max(0, min(int(left.Time/each), int(float64(left.Bytes)/bytes)))
}

// recordUnpaired enters what the single runs and the comparison showed of each candidate.
func (c *comparison) recordUnpaired(tried []Setup) {
	today := stats.Typical(goodputs(c.seen.baselineRuns()))
	for _, s := range tried {
		runs := c.seen.runsOf(s)
		r := singleRun(s, runs[len(runs)-1], today)
		r.needs = 2 * fewestProof * (c.span(Setup{}) + c.span(s))
		if u := c.unpaired; u.setup == s && u.runs.Runs(1) > 0 {
			r = c.unpairedRemedy()
		}
		c.remedies = append(c.remedies, r)
	}
}

// unpairedRemedy returns what the comparison showed of its candidate.
func (c *comparison) unpairedRemedy() Remedy {
	u := c.unpaired
	runs := c.seen.runsOf(u.setup)
	r := singleRun(u.setup, runs[0], 1)
	r.Goodput = stats.Typical(c.seen.turns(u.setup)) // the gain is of these runs
	r.Retransmits = retransmits(runs)
	r.Runs = u.runs.Runs(1)
	r.BaselineRuns = u.runs.Runs(0)
	r.Gain = u.runs.Gain()
	r.more = u.runs.Needs()
	r.needs = time.Duration(r.more) * max(c.span(Setup{}), c.span(u.setup))
	return r
}
