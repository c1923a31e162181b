package report

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/tune"
)

// tuneFixes returns the remedies of a direction: the chosen setup with its gain and its settings;
// else the budget that would decide between open setups, then the verdict's remedies, last the
// remedies without a proven gain.
func tuneFixes(d *tune.Direction, doc *record.TuneDirection) []advice.Fix {
	facts := factsOf(&doc.Before.Direction, d.Before.Typical)
	facts.GoodputBps = doc.Before.MedianBps
	facts.Sender = d.Sender
	facts.Receiver = d.Receiver
	if !d.Path.LowerBound {
		facts.PathBps = d.Path.CapacityBps
	}
	facts.PassingMSS = d.Path.PassingMSS
	facts.PassingMTU = d.Path.MTU
	fixes := advice.Fixes(d.Before.Verdict, facts)
	if d.Chosen == nil {
		tried := triedActions(d)
		for i := range fixes {
			if tried[fixes[i].Action] {
				fixes[i].Expected = nil
			}
		}
		if d.Goal == tune.Latency && d.Verdict != search.NoChange {
			tried[advice.FasterLine] = true // a full link says nothing of the queue before it
		}
		slices.SortStableFunc(fixes, func(a, b advice.Fix) int {
			return later(tried[a.Action]) - later(tried[b.Action])
		})
		if u := d.Disturbed; u != nil {
			return append([]advice.Fix{advice.Repeat(d.Before.Verdict.Limiter, u.End(d.Direction))}, fixes...)
		}
		more := moreTime(d)
		if d.Open != nil && d.Open.Gain > 0 && d.Open.Gain < worthwhile && fixes[0].Action != advice.FasterLine {
			return append(fixes, more...)
		}
		return append(more, fixes...)
	}
	chosen := chosenFixes(d, doc)
	return append(chosen, slices.DeleteFunc(fixes, func(f advice.Fix) bool {
		return slices.ContainsFunc(chosen, func(c advice.Fix) bool { return c.Action == f.Action })
	})...)
}

// worthwhile is the gain from which on an open candidate matters more than the verdict's remedy.
const worthwhile = 1.05

// moreTime returns the budget that would decide the open question; nil if none would.
func moreTime(d *tune.Direction) []advice.Fix {
	if d.Open == nil || d.Open.Budget == 0 {
		return nil
	}
	return []advice.Fix{{Limiter: d.Before.Verdict.Limiter, Action: advice.LargerBudget, End: advice.Both,
		Source: text.MeasuredInTurn, Settings: []plan.Setting{text.TuneBudget(d)}}}
}

func later(last bool) int {
	if last {
		return 1
	}
	return 0
}

// actions returns the actions of a setup.
func actions(s tune.Setup, smaller bool) (all []advice.Action) {
	window := advice.LargerWindows
	if smaller {
		window = advice.WindowOfBDP
	}
	for _, part := range []struct {
		is     bool
		action advice.Action
	}{{s.Window > 0, window}, {s.Congestion != "", advice.OtherControl}, {s.PacingBps > 0, advice.PaceBelow},
		{s.MSS > 0, advice.SmallerSegment}, {s.Streams > 1, advice.ParallelFlows}} {
		if part.is {
			all = append(all, part.action)
		}
	}
	return all
}

// triedActions are the actions that were tried and not shown to help.
func triedActions(d *tune.Direction) map[advice.Action]bool {
	tried := map[advice.Action]bool{}
	for _, r := range d.Remedies {
		for _, a := range actions(r.Setup, true) {
			tried[a] = true
		}
	}
	for _, r := range d.Remedies {
		if r.Gain.Low > 1 {
			for _, a := range actions(r.Setup, true) {
				delete(tried, a)
			}
		}
	}
	if d.Verdict == search.NoChange && len(d.Remedies) == 0 { // no window was better
		for _, a := range []advice.Action{advice.LargerWindows, advice.RaiseCeilings, advice.WindowOfBDP} {
			tried[a] = true
		}
	}
	return tried
}

// chosenFixes returns the parts of the chosen setup; the first one has their common gain.
func chosenFixes(d *tune.Direction, doc *record.TuneDirection) (fixes []advice.Fix) {
	parts := actions(d.Chosen.Setup, d.Narrows())
	for i, action := range parts {
		step := stepOf(d, action)
		fix := advice.Fix{Limiter: d.Before.Verdict.Limiter, Action: action, Scope: step.Scope, End: step.End,
			Source:   step.Source,
			Settings: []plan.Setting{}}
		if i == 0 {
			for _, s := range doc.Settings {
				if s.Recipe == 1 {
					fix.Settings = append(fix.Settings, s.Setting)
				}
			}
			if doc.After != nil && doc.After.CI95Bps != nil {
				fix.Expected = &advice.Expected{LowBps: doc.After.CI95Bps[0], HighBps: doc.After.CI95Bps[1]}
			}
		}
		fixes = append(fixes, fix)
	}
	return fixes
}

// stepOf is the step of the verdict's list with that action, else a program's own.
func stepOf(d *tune.Direction, action advice.Action) advice.Step {
	for _, s := range advice.For(d.Before.Verdict.Limiter, d.Before.Verdict.Subtype) {
		if s.Action == action {
			return s
		}
	}
	return advice.Step{Action: action, Scope: advice.Program, End: advice.Both, Source: text.MeasuredInTurn}
}
