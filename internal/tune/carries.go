package tune

import (
	"maps"
	"math"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// most is the most that a way to send carried by the median of two runs or more, and one of
// those runs; one run alone may have begun behind a hole, whose bytes count as if they came then.
func (l *loop) most() (bps float64, of *Trial) {
	for _, trials := range l.repeated() {
		if median := stats.Median(goodputs(trials)); median > bps {
			bps = median
			of = trials[0]
		}
	}
	return bps, of
}

// repeated are the ways to send that were tried twice or more, with their runs.
func (l *loop) repeated() map[Setup][]*Trial {
	runs := map[Setup][]*Trial{}
	for _, t := range l.of(func(t *Trial) bool { return t.result != nil && t.Goodput > nothing }) {
		runs[t.Setup] = append(runs[t.Setup], t)
	}
	maps.DeleteFunc(runs, func(_ Setup, trials []*Trial) bool { return len(trials) < 2 })
	return runs
}

// alike is how near two ways to send have to come to each other for the path to be what holds both.
const alike = 0.95

// agreed says that another way to send, which takes losses otherwise, came as far as the most did, and that
// the network held back both: what two ways reach and none exceeds is the path's, as a policer's rate is.
func (l *loop) agreed(bps float64, most Setup) bool {
	network := func(t *Trial) bool { return t.Limiter == verdict.Bottleneck || t.Limiter == verdict.Congestion }
	agree := false
	for s, trials := range l.repeated() {
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

// carries holds what the path is said to carry against all runs: it is no less than what was
// carried again and again, and no more where a policer let a burst through and nothing that was
// tried came near that rate, or where two ways to send agree.
func (l *loop) carries() {
	p := &l.out.Path
	bps, of := l.most()
	if of == nil || l.cfg.Goal == Fair {
		return
	}
	today := l.measured(l.of(func(t *Trial) bool { return t.Automatic })).Verdict
	burst := today.Subtype == verdict.Policer && len(l.out.Remedies) > 0 && !p.AtLeast
	// What came through between losses is a guess; what fills the link in spite of them is not.
	burst = burst || !p.AtLeast && (of.Setup.Congestion == lossBlind && l.fills(of.Setup) || l.agreed(bps, of.Setup))
	if steady := policedBps(&today); steady > 0 && burst && bps > steady && bps < tenth*steady {
		bps = steady // of short runs a part came out of the bucket
	}
	if bps > p.CapacityBps || burst {
		p.CapacityBps = bps
		l.size(of.result)
	}
}

// atMost is what transfers can have carried: what the path carries or, where windows are all that
// was seen to limit, their largest window each round trip. Infinity is not known.
func (l *loop) atMost(trials []*Trial) float64 {
	p := &l.out.Path
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

// unpolice takes a policer out of a verdict where another way to send, without more streams,
// carried a tenth more again and again: a policer lets nobody through. A queue that is too
// short looks alike.
func (l *loop) unpolice(m *Measured) {
	v := &m.Verdict
	if v.Subtype != verdict.Policer {
		return
	}
	faster := map[Setup][]float64{}
	for _, t := range l.of(func(t *Trial) bool { return !t.Automatic && t.Spec.Streams < 2 }) {
		faster[t.Setup] = append(faster[t.Setup], t.Goodput)
	}
	for _, bps := range faster {
		if len(bps) < 2 || stats.Median(bps) < tenth*m.Interval.Mid {
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

// fills says that most runs of a setup, two at least, were held back by the link.
func (l *loop) fills(s Setup) bool {
	runs := l.of(func(t *Trial) bool { return t.Setup == s })
	full := 0
	for _, t := range runs {
		if t.Limiter == verdict.Bottleneck {
			full++
		}
	}
	return len(runs) > 1 && 2*full > len(runs)
}

// nearly says that automatic sizing was shown to come within a twentieth of the best window, or seems
// to and was shown to come within a tenth, or nobody could tell: what is left to gain is less than it
// takes to matter.
func (l *loop) nearly() bool {
	open := l.searched != nil && l.answer.Verdict == search.Inconclusive && l.promising() == nil
	if l.winner != (Setup{}) { // which its proof may not have shown
		open = open && !l.shown && l.inTurn(l.winner, confidence).Mid < tenth
	}
	return open && (l.searched.Reaches(search.Nearly) || l.searched.Alike() || l.untold())
}

// untold says that automatic sizing seems to come within a twentieth of the best window, where runs
// scatter so much that no budget that is proposed would tell.
func (l *loop) untold() bool {
	return l.searched.Automatic() >= search.Nearly && l.enough(l.answer.Needs) == 0
}

// full says that the link is what limits and that two of three runs reach a share of the most it
// carried. With all but what a window may lack of it other windows cannot be better, however much
// runs scatter: what scatters is what keeps some of them below. With a little less they cannot be so
// by as much as it takes to matter.
func (l *loop) full(share float64) bool {
	if l.out.Path.AtLeast || l.cfg.Goal != "" && l.cfg.Goal != Throughput || l.swallows() {
		return false
	}
	today := l.of(func(t *Trial) bool { return t.Automatic })
	bps, _ := l.most()
	bps = max(bps, l.out.Path.CapacityBps)
	reach := 0
	for _, t := range today {
		if t.Goodput >= share*bps {
			reach++
		}
	}
	return len(today) > 1 && 3*reach >= 2*len(today) && l.measured(today).Verdict.Limiter == verdict.Bottleneck
}

// inVain says that all that was tried was decided: none of it helps by as much as it takes to
// matter, and no window may either.
func (l *loop) inVain() bool {
	return l.vain && l.winner == (Setup{}) && (l.searched == nil || l.answer.Verdict == search.NoChange) &&
		l.promising() == nil
}
