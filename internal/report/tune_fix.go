package report

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/remedy"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/tune"
)

// tuneFixes are what to do about a direction: the setup that was chosen, with what it gave
// and its settings; else what the verdict calls for, last what was tried and did not help.
func tuneFixes(d *tune.Direction, doc *record.TuneDirection) []record.Fix {
	facts := factsOf(&doc.Before.Direction)
	facts.GoodputBps = doc.Before.MedianBps
	if !d.Path.AtLeast {
		facts.PathBps = d.Path.CapacityBps
	}
	fixes := Fixes(d.Before.Verdict, facts)
	if d.Chosen == nil {
		vain := inVain(d)
		if d.Goal == tune.Latency && d.Verdict != search.NoChange {
			vain[remedy.FasterLine] = true // a full link says nothing of the queue before it
		}
		slices.SortStableFunc(fixes, func(a, b record.Fix) int {
			return later(vain[a.Action]) - later(vain[b.Action])
		})
		if len(fixes) > 0 && vain[fixes[0].Action] {
			fixes[0].Expected = nil
		}
		return fixes
	}
	chosen := chosenFixes(d, doc)
	return append(chosen, slices.DeleteFunc(fixes, func(f record.Fix) bool {
		return slices.ContainsFunc(chosen, func(c record.Fix) bool { return c.Action == f.Action })
	})...)
}

func later(last bool) int {
	if last {
		return 1
	}
	return 0
}

// actions are what a setup does.
func actions(s tune.Setup, smaller bool) (all []remedy.Action) {
	window := remedy.LargerWindows
	if smaller {
		window = remedy.WindowOfBDP
	}
	for _, part := range []struct {
		is     bool
		action remedy.Action
	}{{s.Window > 0, window}, {s.Congestion != "", remedy.OtherControl}, {s.PacingBps > 0, remedy.PaceBelow},
		{s.MSS > 0, remedy.SmallerSegment}, {s.Streams > 1, remedy.ParallelFlows}} {
		if part.is {
			all = append(all, part.action)
		}
	}
	return all
}

// promising is the gain from which a remedy that was not shown to help stays where it was.
const promising = 1.1

// inVain are the actions that were tried and of which no try seemed to help.
func inVain(d *tune.Direction) map[remedy.Action]bool {
	vain := map[remedy.Action]bool{}
	for _, r := range d.Remedies {
		for _, a := range actions(r.Setup, true) {
			tried, known := vain[a]
			vain[a] = (tried || !known) && r.Gain.Mid < promising
		}
	}
	return vain
}

// chosenFixes are the parts of the chosen setup; the first says what all of them gave.
func chosenFixes(d *tune.Direction, doc *record.TuneDirection) (fixes []record.Fix) {
	smaller := d.Chosen.SendBuffer == 0 && d.Chosen.ReceiveBuffer == 0
	parts := actions(d.Chosen.Setup, smaller)
	for i, action := range parts {
		step := stepOf(d, action)
		fix := record.Fix{Limiter: d.Before.Verdict.Limiter, Action: action, Scope: step.Scope, End: step.End,
			Source:   step.Source,
			Settings: []plan.Setting{}}
		if i == 0 {
			for _, s := range doc.Settings {
				fix.Settings = append(fix.Settings, s.Setting)
			}
			if doc.After != nil && doc.After.CI95Bps != nil {
				fix.Expected = &record.Expected{LowBps: doc.After.CI95Bps[0], HighBps: doc.After.CI95Bps[1]}
			}
		}
		fixes = append(fixes, fix)
	}
	return fixes
}

// stepOf is the step of the verdict's list with that action, else a program's own.
func stepOf(d *tune.Direction, action remedy.Action) remedy.Step {
	for _, s := range remedy.For(d.Before.Verdict.Limiter, d.Before.Verdict.Subtype) {
		if s.Action == action {
			return s
		}
	}
	return remedy.Step{Action: action, Scope: remedy.Program, End: remedy.Both, Source: "measured in turn with today's"}
}
