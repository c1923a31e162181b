package tune

import (
	"cmp"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// settle checks a verdict against the other trials: a window or buffer limits only if a larger one gave a tenth more.
// Otherwise what limited the larger one is the limiter.
func (o *observations) settle(m *Measured, with Setup) {
	v := &m.Verdict
	o.unpolice(m)
	window := blamed(v)
	if window == "" {
		return
	}
	effective := 0
	for _, t := range o.runsOf(with) {
		effective = max(effective, t.Effective)
	}
	roomier := o.of(func(t *Trial) bool {
		return t.Remedy == with.besides() && float64(t.Effective) >= larger*float64(effective)
	})
	var best float64
	var other *Trial
	for _, trials := range bySetup(roomier) {
		if g := stats.Median(goodputs(trials)); g > best {
			best = g
			other = trials[0]
		}
	}
	if effective == 0 || other == nil || best >= tenth*m.Interval.Mid {
		return
	}
	moved := []verdict.Name{window}
	if windowOrLink(v) {
		moved = append(moved, verdict.Unknown)
	}
	v.Limiter = verdict.Bottleneck
	v.Subtype = ""
	v.Candidates = nil
	often := usual(roomier)
	if often != nil {
		v.Limiter = often.verdict.Limiter
		v.Subtype = often.verdict.Subtype
		v.Candidates = often.verdict.Candidates
	}
	v.Confidence = counterfactual(v.Limiter, often, best <= m.Interval.Mid/search.Enough &&
		float64(other.Effective) >= farLarger*float64(effective))
	v.Shares = attribute(v.Shares, moved, v.Limiter)
	v.Evidence = append([]verdict.Evidence{{Limiter: v.Limiter, Code: verdict.LargerWindowNoFaster, Values: verdict.Values{
		"larger_window_bytes": float64(other.Effective), "larger_ratio": float64(other.Effective) / float64(effective),
		"larger_bps": best}}}, v.Evidence...)
}

// attribute returns the shares of time with those of some limiters counted as another's.
func attribute(shares verdict.Shares, from []verdict.Name, to verdict.Name) verdict.Shares {
	all := verdict.Shares{}
	for name, share := range shares {
		if slices.Contains(from, name) {
			name = to
		}
		all[name] += share
	}
	return all
}

// counterfactual returns the confidence in a limiter that a larger window showed: its own trial's; at most medium where
// the window was only somewhat larger or faster; medium where a far larger one gave nothing more and blames the link.
func counterfactual(limiter verdict.Name, often *Trial, nothingMore bool) verdict.Confidence {
	sure := verdict.Low
	if often != nil {
		sure = often.verdict.Confidence
	}
	switch {
	case nothingMore && sure == verdict.Low && limiter == verdict.Bottleneck:
		return verdict.Medium
	case !nothingMore && sure == verdict.High:
		return verdict.Medium
	}
	return sure
}

// blamed returns the window or buffer that a verdict names, also among candidates; "" if none.
func blamed(v *verdict.Verdict) verdict.Name {
	names := []verdict.Name{v.Limiter}
	if v.Limiter == verdict.Mixed || windowOrLink(v) {
		names = v.Candidates
	}
	for _, name := range names {
		if name == verdict.ReceiverWindow || name == verdict.SendBuffer {
			return name
		}
	}
	return ""
}

// windowOrLink says that a verdict leaves open only whether a window or the link limits.
func windowOrLink(v *verdict.Verdict) bool {
	return v.Limiter == verdict.Unknown && len(v.Candidates) == 2 && slices.Contains(v.Candidates, verdict.Bottleneck)
}

// usual returns the first trial of the limiter, windows apart, that most of the roomier trials had; nil where none had
// another. Of limiters that as many had, a full link is the answer, or else the one that showed first.
func usual(roomier []*Trial) (often *Trial) {
	count := map[verdict.Name]int{}
	others := slices.DeleteFunc(slices.Clone(roomier), func(t *Trial) bool { return blamed(&t.verdict) != "" })
	for _, t := range others {
		count[t.Limiter]++
	}
	for _, t := range others {
		if often == nil || count[t.Limiter] > count[often.Limiter] ||
			count[t.Limiter] == count[often.Limiter] && t.Limiter == verdict.Bottleneck && often.Limiter != verdict.Bottleneck {
			often = t
		}
	}
	return often
}

// commonest returns the trials of the most frequent limiter, and of its most frequent subtype; ties keep all.
func commonest(trials []*Trial) []*Trial {
	named := most(trials, func(t *Trial) string { return string(t.Limiter) })
	long := slices.DeleteFunc(slices.Clone(named), func(t *Trial) bool {
		return t.verdict.Subtype == "" && (t.result == nil || !t.canShowPolicer())
	})
	if slices.ContainsFunc(long, func(t *Trial) bool { return t.verdict.Subtype == verdict.Policer }) {
		named = long // the others were too short to show one
	}
	return most(named, func(t *Trial) string { return t.verdict.Subtype })
}

func most(trials []*Trial, of func(*Trial) string) (common []*Trial) {
	count := map[string]int{}
	highest := 0
	for _, t := range trials {
		count[of(t)]++
		highest = max(highest, count[of(t)])
	}
	for _, t := range trials {
		if count[of(t)] == highest {
			common = append(common, t)
		}
	}
	return common
}

// agree lowers the confidence of a verdict that not all runs gave: one step where most of them say so, to low where
// they do not. said is what the typical run named before settle; runs that name a window were settled with it.
func (m *Measured) agree(trials []*Trial, said verdict.Name) {
	v := &m.Verdict
	agree := 0
	settled := said != v.Limiter
	for _, t := range trials {
		if t.Limiter == v.Limiter || t.Limiter == said || settled && blamed(&t.verdict) != "" {
			agree++
		}
	}
	share := float64(agree) / float64(len(trials))
	if agree == len(trials) {
		return
	}
	switch {
	case share >= agreeing:
	case share > mostly:
		v.Confidence = verdict.Lower(v.Confidence)
	default:
		v.Confidence = verdict.Low
	}
	v.Evidence = append(slices.Clone(v.Evidence), verdict.Evidence{Limiter: v.Limiter, Code: verdict.RunsDisagree,
		Values: verdict.Values{"runs": float64(len(trials)), "agree": float64(agree)}})
}

// judgedTogether returns the trials. A trial of a window has the limiter of all trials of that window. Windows of equal
// goodput have one limiter: that of automatic sizing or, without it, that of the window with the most runs.
func (o *observations) judgedTogether(d *Direction) []Trial {
	all := slices.Clone(o.trials)
	windows := bySetup(o.of(func(t *Trial) bool { return t.Remedy == "" }))
	rank := func(runs []*Trial) int {
		if runs[0].Automatic {
			return len(o.trials)
		}
		return len(runs)
	}
	slices.SortStableFunc(windows, func(a, b []*Trial) int { return cmp.Compare(rank(b), rank(a)) })
	var judged []Measured
	for _, runs := range windows {
		m := o.measured(runs)
		equal := func(other Measured) bool {
			ratio := m.Interval.Mid / other.Interval.Mid
			return ratio >= alike && ratio <= 1/alike
		}
		switch i := slices.IndexFunc(judged, equal); {
		case runs[0].Automatic:
			m = d.Before
		case d.Chosen != nil && d.Chosen.Setup == runs[0].Setup:
			m = *d.After
		case i >= 0:
			m.Verdict.Limiter = judged[i].Verdict.Limiter
		}
		judged = append(judged, m)
		for i := range all {
			if all[i].Setup == runs[0].Setup {
				all[i].Limiter = m.Verdict.Limiter
			}
		}
	}
	return all
}
