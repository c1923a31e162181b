package rfc6349

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Verdicts.
const (
	Pass         = record.RFC6349Pass
	Fail         = record.RFC6349Fail
	Inconclusive = record.RFC6349Inconclusive
	NotJudged    = record.RFC6349NotJudged
)

// judge judges the measurements against the committed rates and limits.
func (t *tester) judge() {
	for i := range t.out.Directions {
		d := &t.out.Directions[i]
		t.exceedUDP(d)
		if d.CommittedBps > 0 {
			d.Criteria = append(d.Criteria, t.judgeBandwidth(d))
			for _, kind := range []Kind{Full, Several, Both} {
				if kind == Both && len(t.out.Directions) < 2 {
					continue
				}
				d.Criteria = append(d.Criteria, t.judgeThroughput(d, kind))
			}
		}
		d.Criteria = append(d.Criteria, t.judgeMetrics(d)...)
		for k := range d.Frames {
			t.judgeFrame(d, &d.Frames[k])
		}
	}
	t.out.Verdict = Conclude(t.out.Directions)
}

// Conclude sets the verdicts of directions by their criteria and frames, and returns that of all.
func Conclude(directions []Direction) Verdict {
	var all []Verdict
	for i := range directions {
		directions[i].Verdict = directionVerdict(&directions[i])
		all = append(all, directions[i].Verdict)
	}
	return conclude(all)
}

// conclude is fail where anything failed, and pass only where everything passed that is
// judged.
func conclude(all []Verdict) Verdict {
	all = slices.DeleteFunc(all, func(v Verdict) bool { return v == NotJudged })
	switch {
	case len(all) == 0:
		return NotJudged
	case slices.Contains(all, Fail):
		return Fail
	case slices.Contains(all, Inconclusive):
		return Inconclusive
	}
	return Pass
}

// judgeBandwidth compares the bottleneck with the committed rate at the IP layer.
func (t *tester) judgeBandwidth(d *Direction) Criterion {
	b := &d.Bottleneck
	c := Criterion{Name: "bandwidth", Unit: "bps", Due: t.committedIP(d), Verdict: Inconclusive}
	c.Required = c.Due * (1 - t.cfg.Tolerance)
	if b.Bps == 0 {
		c.Reason.Code = BottleneckNotMeasured
		return c
	}
	c.Measured = &b.Bps
	c.CI95 = &b.Range
	tcp := t.mostTCP(d)
	switch {
	case b.Bps >= c.Required:
		c.Verdict = Pass
	case t.ipOf(tcp) >= c.Required:
		c.Reason = Statement{Code: UDPTreatedWorse, Values: verdict.Values{"bps": t.ipOf(tcp)}}
	case b.AtLeast && len(b.Trials) > 0:
		c.Reason.Code = NoEndFound
	case b.AtLeast:
		c.Reason = Statement{Code: LowerBoundOnly, Because: &b.Method}
	default:
		c.Verdict = Fail
		c.Reason.Code = LineTooNarrow
	}
	return c
}

// exceedUDP makes the bottleneck's rate by UDP a lower bound where the typical run of a TCP test carried more.
func (t *tester) exceedUDP(d *Direction) {
	most := threshold.FiguresAgree.Value * t.tcpOf(d.Bottleneck.Bps)
	exceeds := func(test Test) bool { return test.Typical() != nil && test.Typical().SteadyBps > most }
	if d.Bottleneck.AtLeast || most == 0 || !slices.ContainsFunc(d.Tests, exceeds) {
		return
	}
	d.Bottleneck.AtLeast = true
	for i := range d.Tests {
		if d.Tests[i].Kind != Both {
			d.Tests[i].AchievableBps = t.achievable(d, &d.Tests[i])
		}
	}
}

// mostTCP is the largest goodput of any run in a direction.
func (t *tester) mostTCP(d *Direction) (most float64) {
	for _, test := range d.Tests {
		for _, r := range test.Runs {
			most = max(most, r.SteadyBps)
		}
	}
	return most
}

// ends are the limiters that are the hosts' and say nothing against the line.
var ends = []verdict.Name{verdict.Application, verdict.SendBuffer, verdict.ReceiverWindow, verdict.ReceiverApplication,
	verdict.LocalQueue,
	verdict.NagleDelayedAck, verdict.Pacing, verdict.CPU, verdict.Sender, verdict.SlowStart}

// minRunsToFail is the number of runs that must fall short: a short pause of a host spoils
// one.
const minRunsToFail = 3

// shared is the largest sum of both directions' rates, as a factor of the rate alone, on a shared
// medium.
const shared = 1.15

// judgeThroughput compares TCP's goodput in equilibrium with the largest that the
// committed rate carries.
func (t *tester) judgeThroughput(d *Direction, kind Kind) Criterion {
	c := Criterion{Name: string(kind), Unit: "bps", Verdict: Inconclusive}
	c.Due, c.Required = t.due(d, kind)
	test := d.Find(kind)
	switch {
	case test == nil:
		c.Reason.Code = NotReached
		return c
	case len(test.Runs) == 0:
		c.Reason = Statement{Code: DidNotRun, Because: &test.Skipped}
		return c
	}
	c.Measured = test.GoodputBps
	c.CI95 = test.CI95Bps
	run := test.Typical()
	switch {
	case test.Goodput.Low >= c.Required:
		c.Verdict = Pass
	case kind == Both && !t.narrow(d):
		c.Verdict, c.Reason = t.judgeBoth()
	case test.Goodput.High >= c.Required:
		c.Reason.Code = RateInInterval
	case t.narrow(d):
		c.Verdict = Fail
		c.Reason.Code = LineNarrower
	case slices.Contains(ends, run.Verdict.Limiter):
		c.Reason = Statement{Code: LimitedByEnd, Limiter: run.Verdict.Limiter}
	case run.Verdict.Limiter == verdict.Unknown || run.Verdict.Limiter == verdict.Mixed:
		c.Reason.Code = LimiterUnknown
	case len(test.Runs) < minRunsToFail:
		c.Reason.Code = TooFewRuns
	default:
		c.Reason = t.why(d, run)
		c.Verdict = Fail
	}
	return c
}

// due returns the committed goodput for a kind of test, and the goodput that is required with the tolerance.
func (t *tester) due(d *Direction, kind Kind) (due, required float64) {
	due = d.MaxTCPBps
	if kind == Both {
		due = d.MaxBidirectionalBps
	}
	return due, due * (1 - t.cfg.Tolerance)
}

// narrow reports whether stateless traffic found the line itself slower than committed.
func (t *tester) narrow(d *Direction) bool {
	return t.judgeBandwidth(d).Verdict == Fail
}

// judgeBoth separates a medium that both directions share from transfers that only disturb
// each other: TCP acknowledgements queue behind the other direction's data. The sum of both
// directions' rates, each as a share of its rate alone, is 1 on a shared medium and 2
// otherwise.
func (t *tester) judgeBoth() (Verdict, Statement) {
	var low, mid, high float64
	fewest := maxRuns
	for i := range t.out.Directions {
		d := &t.out.Directions[i]
		test := d.Find(Both)
		full := d.Find(Full)
		switch {
		case test == nil || full == nil || len(test.Runs) == 0 || len(full.Runs) == 0:
			return Inconclusive, Statement{Code: OtherNotMeasured}
		}
		alone := full.Goodput
		if _, required := t.due(d, Full); alone.High < required {
			return Inconclusive, Statement{Code: AloneTooSlow, Direction: d.Direction}
		}
		low = low + test.Goodput.Low/alone.High
		mid = mid + test.Goodput.Mid/alone.Mid
		high = high + test.Goodput.High/alone.Low
		fewest = min(fewest, len(test.Runs))
	}
	reason := Statement{Code: SharingUndecided, Values: verdict.Values{"factor": mid}}
	switch {
	case low > shared:
		reason.Code = AcksDelayed
		return NotJudged, reason
	case high <= shared && fewest >= minRunsToFail:
		reason.Code = SharedMedium
		return Fail, reason
	}
	return Inconclusive, reason
}

// why reads the metrics of a run that fell short (section 5.2).
func (t *tester) why(d *Direction, run *Outcome) Statement {
	reason := Statement{Code: Limited, Limiter: run.Verdict.Limiter, Subtype: run.Verdict.Subtype}
	lossy := run.RFC6349Sender != nil && run.Efficiency < 0.998
	queued := run.BufferDelay != nil && *run.BufferDelay > 0.25
	switch {
	case d.Bottleneck.Bps > 0 && !d.Bottleneck.AtLeast && run.SteadyBps > 0.93*t.tcpOf(d.Bottleneck.Bps):
		reason.Code = LineFull
	case lossy && !queued:
		reason.Code = LossWithoutQueue
		reason.Values = verdict.Values{"retransmitted_ratio": 1 - run.Efficiency}
	case queued && !lossy:
		reason.Code = QueueWithoutLoss
	case queued && lossy:
		reason.Code = QueueOverflow
	}
	return reason
}

// judgeMetrics judges the metrics that have a limit.
func (t *tester) judgeMetrics(d *Direction) (all []Criterion) {
	ratio := func(name string, limit float64, measure func(*Outcome) *float64, meets func(float64) bool) {
		if limit == 0 {
			return
		}
		c := Criterion{Name: name, Unit: "ratio", Due: limit, Required: limit, Verdict: Inconclusive,
			Reason: Statement{Code: NotMeasured}}
		if test := d.Find(Full); test != nil {
			var values []float64
			for i := range test.Runs {
				if v := measure(&test.Runs[i]); v != nil {
					values = append(values, *v)
				}
			}
			if len(values) > 0 {
				low := slices.Min(values)
				high := slices.Max(values)
				median := stats.Median(values)
				c.Measured = &median
				c.CI95 = &[2]float64{low, high}
				c.Reason.Code = ""
				switch {
				case meets(low) && meets(high):
					c.Verdict = Pass
				case !meets(low) && !meets(high):
					c.Verdict = Fail
					c.Reason.Code = EveryRun
				default:
					c.Reason.Code = SomeRuns
				}
			}
		}
		all = append(all, c)
	}
	ratio("efficiency", t.cfg.LeastEfficiency, efficiency,
		func(v float64) bool { return v >= t.cfg.LeastEfficiency })
	ratio("buffer-delay", t.cfg.MostBufferDelay, func(r *Outcome) *float64 { return r.BufferDelay },
		func(v float64) bool { return v <= t.cfg.MostBufferDelay })
	return all
}

// directionVerdict returns the verdict of a direction from its criteria and frames.
func directionVerdict(d *Direction) Verdict {
	var all []Verdict
	for _, c := range d.Criteria {
		all = append(all, c.Verdict)
	}
	if d.CommittedBps > 0 {
		for _, f := range d.Frames {
			all = append(all, f.Verdict)
		}
	}
	return conclude(all)
}
