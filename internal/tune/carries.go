package tune

import (
	"math"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// mostCarried returns the largest median goodput of a setup with two runs or more, and one of those runs; or that of a
// baseline run without loss. Any other single run may have begun behind a hole, and its bytes count as if they came
// then.
func (o *observations) mostCarried() (bps float64, of *Trial) {
	for _, t := range o.baselineRuns() {
		if t.result != nil && t.Lossless && t.Goodput > max(bps, nothing) {
			bps = t.Goodput
			of = t
		}
	}
	for _, trials := range o.repeated() {
		if median := stats.Median(goodputs(trials)); median > bps {
			bps = median
			of = trials[0]
		}
	}
	return bps, of
}

// repeated returns the runs of each setup that was tried twice or more.
func (o *observations) repeated() [][]*Trial {
	runs := bySetup(o.of(func(t *Trial) bool { return t.result != nil && t.Goodput > nothing }))
	return slices.DeleteFunc(runs, func(trials []*Trial) bool { return len(trials) < 2 })
}

// bySetup returns the trials of each setup, in the order of their first trials.
func bySetup(trials []*Trial) (groups [][]*Trial) {
	for _, t := range trials {
		i := slices.IndexFunc(groups, func(group []*Trial) bool { return group[0].Setup == t.Setup })
		if i < 0 {
			i = len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], t)
	}
	return groups
}

// agreed says that another way to send, which takes losses otherwise, came as far as the most did, and that
// the network limited both: a rate that two setups reach and none exceeds is the path's, as a policer's is.
func (o *observations) agreed(bps float64, most Setup) bool {
	network := func(t *Trial) bool { return t.Limiter == verdict.Bottleneck || t.Limiter == verdict.Congestion }
	agree := false
	for _, trials := range o.repeated() {
		s := trials[0].Setup
		otherwise := s.Congestion != most.Congestion || max(s.Streams, 1) != max(most.Streams, 1)
		switch all := !slices.ContainsFunc(trials, func(t *Trial) bool { return !network(t) }); {
		case s == most && !all:
			return false
		case all && otherwise && stats.Median(goodputs(trials)) >= alike*bps:
			agree = true
		}
	}
	return agree
}

// carries corrects the path's capacity by all runs: it is at least what was carried repeatedly, and no more where a
// policer let a burst through and nothing came near that rate, or where two ways to send agree.
func (o *observations) carries(tried bool) {
	p := o.path
	bps, of := o.mostCarried()
	if of == nil || o.goal == Fair {
		return
	}
	today := o.measured(o.baselineRuns()).Verdict
	// isMost: the path carries no more than bps.
	isMost := today.Subtype == verdict.Policer && tried && !p.AtLeast
	// The rate between losses is an estimate; a setup that fills the link in spite of them measures it.
	isMost = isMost || !p.AtLeast && (of.Setup.Congestion == lossBlind && o.fills(of.Setup) || o.agreed(bps, of.Setup))
	if steady := policedBps(&today); o.longRun == 0 && steady > 0 && isMost && bps > steady && bps < tenth*steady {
		bps = steady // of short runs a part came out of the bucket
	}
	// The rate between losses may be a bucket's: a control that overfills the path comes near to what it carries.
	if best := max(bps, o.best); !isMost && !p.AtLeast && p.CapacityBps > best && o.isOverfilled() {
		bps = best
		isMost = true
	}
	if bps > p.CapacityBps || isMost {
		p.CapacityBps = bps
		o.path.size(of.result)
	}
}

// wasFilled reports that a transfer filled the path at its capacity, or that a policer let no more
// through.
func (o *observations) wasFilled() bool {
	return slices.ContainsFunc(o.trials, func(t Trial) bool {
		full := t.Limiter == verdict.Bottleneck || t.verdict.Subtype == verdict.Policer
		return full && t.Goodput >= alike*o.path.CapacityBps && !o.path.limitedByWindow(&t)
	})
}

// isOverfilled reports that lossBlind sent so much more than the path carries that it lost as much as behind a policer.
func (o *observations) isOverfilled() bool {
	return slices.ContainsFunc(o.lossBlindRuns(), func(t *Trial) bool {
		ratio, known := t.retransmitRatio()
		network := t.Limiter == verdict.Bottleneck || t.Limiter == verdict.Congestion
		return known && network && ratio >= threshold.PolicedLoss.Value
	})
}

// atMost returns the most that transfers can have carried, in bit/s: the path's capacity or, where only windows
// limited, the largest window per round trip. It returns infinity where that is not known.
func (o *observations) atMost(trials []*Trial) float64 {
	p := o.path
	if !p.AtLeast {
		if p.CapacityBps > 0 {
			return p.CapacityBps
		}
		return math.Inf(1)
	}
	largest := 0.0
	for _, t := range trials {
		if t.Effective == 0 || p.RTT <= 0 {
			return math.Inf(1)
		}
		largest = max(largest, float64(t.Effective*max(1, t.Spec.Streams)))
	}
	return largest * 8 / p.RTT.Seconds()
}

// unpolice drops a policer from a verdict where another way to send, by one stream, carried a tenth more repeatedly: a
// policer lets nobody through. A short queue looks the same.
func (o *observations) unpolice(m *Measured) {
	v := &m.Verdict
	if v.Subtype != verdict.Policer {
		return
	}
	for _, faster := range bySetup(o.of(func(t *Trial) bool { return !t.Automatic && t.Spec.Streams < 2 })) {
		if len(faster) < 2 || stats.Median(goodputs(faster)) < tenth*m.Interval.Mid {
			continue
		}
		v.Subtype = ""
		v.Evidence = slices.Clone(v.Evidence)
		for i := range v.Evidence {
			if v.Evidence[i].Code == verdict.PolicedRate {
				v.Evidence[i].Code = verdict.LossWithoutQueue
			}
		}
		return
	}
}

// fills says that most runs of a setup, two at least, were limited by the link.
func (o *observations) fills(s Setup) bool {
	runs := o.runsOf(s)
	full := 0
	for _, t := range runs {
		if t.Limiter == verdict.Bottleneck {
			full++
		}
	}
	return len(runs) > 1 && 2*full > len(runs)
}
