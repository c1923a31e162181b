package rfc6349

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// plan is which TCP runs there will be, and how long each lasts.
type plan struct {
	rungs   []float64 // windows as shares of the bandwidth-delay product
	repeats int       // runs that a sign-off rests on
	length  time.Duration
	total   time.Duration // expected, from the test's beginning
}

// plans from the most thorough to the least; the first that leaves each run long enough
// is taken.
var plans = []plan{
	{rungs: []float64{0.25, 0.5, 0.75, 1, 1.25, 1.5}, repeats: 3},
	{rungs: []float64{0.25, 0.5, 1, 1.5}, repeats: 3},
	{rungs: []float64{0.5, 1, 1.5}, repeats: 2},
	{rungs: []float64{1.25}, repeats: 1},
}

// minRunTime is the shortest run that is worth its startup.
func (t *tester) minRunTime() time.Duration { return max(500*time.Millisecond, 20*t.rtt()) }

// runOverhead returns the overhead of a run, without its own length.
func (t *tester) runOverhead() time.Duration { return 300*time.Millisecond + 6*t.rtt() }

func (t *tester) makePlan() plan {
	frames := t.cfg.Frames.expected() * time.Duration(len(t.cfg.Directions))
	if t.cfg.Budget == 0 {
		p := plans[0]
		p.length = t.cfg.Time
		p.total = t.elapsed() + time.Duration(t.runs(p))*(p.length+t.runOverhead()) + frames
		return p
	}
	left := t.cfg.Budget - t.elapsed() - min(frames, t.cfg.Budget*2/5)
	var p plan
	for _, p = range plans {
		p.length = min(left/time.Duration(t.runs(p))-t.runOverhead(), t.cfg.Time)
		if p.length >= t.minRunTime() {
			break
		}
	}
	p.length = max(p.length, t.minRunTime())
	p.total = t.cfg.Budget
	return p
}

// runs counts a plan's transfers.
func (t *tester) runs(p plan) int {
	n := len(t.cfg.Directions) * (1 + len(p.rungs) + 2*p.repeats)
	if t.canRunBoth() {
		n += bothTimeFactor * p.repeats
	}
	return n
}

// expected returns the expected time of the whole test.
func (t *tester) expected() time.Duration {
	switch {
	case t.plan.total > 0:
		return t.plan.total
	case t.cfg.Budget > 0:
		return t.cfg.Budget
	}
	ways := time.Duration(len(t.cfg.Directions))
	return time.Duration(t.runs(plans[0]))*t.cfg.Time + ways*(10*time.Second+t.cfg.Frames.expected())
}

// canRunBoth reports whether both directions are requested and the peer can carry them at once.
func (t *tester) canRunBoth() bool {
	if len(t.cfg.Directions) < 2 {
		return false
	}
	up := transfer.Spec{Direction: transfer.Up, Time: time.Second}
	down := transfer.Spec{Direction: transfer.Down, Time: time.Second}
	return t.cfg.Peer.Check(transfer.TCP(up, down)) == nil
}
