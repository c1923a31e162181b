package report

import (
	"math"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/tune"
)

// EnterTuneApplied enters the result of applying a direction's settings in its document. The
// decision follows a change that was kept.
func EnterTuneApplied(doc *record.TuneDirection, a *tune.Applied, wholeHost bool) {
	doc.Applied = TuneApplied(a, wholeHost)
	if !a.Kept {
		return
	}
	chosen := doc.Chosen != nil && !doc.Chosen.Automatic
	if !chosen || doc.IsLikely() {
		doc.Reason = "by the change of the hosts below: " + doc.Applied.Reason
	}
	if !chosen {
		doc.Verdict = search.Change
		doc.Chosen = nil
		doc.Fix = slices.DeleteFunc(doc.Fix, func(f advice.Fix) bool { return f.Action == advice.LargerBudget })
	}
	if doc.Decision == nil {
		doc.Decision = &record.TuneDecision{Tried: []string{}}
	}
	if a.Reason.Code != tune.LikelyChanged {
		doc.Decision.Strength = search.Shown
		doc.Decision.ProbabilityRatio = 0 // not computed
	}
}

// TuneApplied describes the result of applying a direction's settings.
func TuneApplied(a *tune.Applied, wholeHost bool) *record.TuneApplied {
	out := &record.TuneApplied{Kept: a.Kept, Reason: text.TuneAppliedReason(a), Marked: a.Marked,
		Far: a.Far, Changes: listed(a.Changes),
		Scope: text.ApplyScope(wholeHost, a.Lasting)}
	if a.NotLasting != nil {
		out.Warnings = append(out.Warnings, "it is lost at the next restart: "+a.NotLasting.Error())
	}
	if a.Kept && text.KeepsOldWindows(append(slices.Clone(out.Changes), out.Far...)) {
		out.Warnings = append(out.Warnings, text.OldWindows)
	}
	if len(a.Before.Goodputs) > 0 && len(a.After.Goodputs) > 0 {
		before := newTuneMeasured(&a.Before)
		after := newTuneMeasured(&a.After)
		out.Before = &before
		out.After = &after
	}
	if !math.IsNaN(a.Gain.Mid) && a.Gain.Mid > 0 && carried(a.Before.Interval.Mid) > 0 {
		out.Gain = new(record.NewGain(a.Gain))
	}
	return out
}
