package tune

import (
	"math"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// conclude puts together what was found, after all steps or after the one that failed.
func (l *loop) conclude(failed bool) {
	out := &l.out
	out.Interrupted = out.Interrupted || failed
	automatic := l.seen.baselineRuns()
	l.seen.carries(len(l.compared.remedies) > 0)
	out.Before = l.seen.measured(automatic)
	l.streams.refine(&out.Before.Verdict)
	l.compared.below.refine(&out.Before)
	l.seen.describePolicer(&out.Before, l.control)
	l.path.LowerBound = l.path.AtLeast || !l.seen.wasFilled()
	out.Path = l.path.Path
	out.Sender = l.sender
	out.Receiver = l.receiver
	out.Gain = l.proof.gain
	out.Delay = l.proof.delay
	out.Others = l.proof.others
	out.Trials = l.seen.trials
	defer func() { out.Warnings = l.warnings() }()
	if len(automatic) == 0 {
		return
	}
	out.Verdict = l.windows.answer.Verdict
	out.Shown = l.windows.answer.Shown
	out.Clipped = l.windows.answer.Clipped
	if out.Verdict == "" {
		out.Verdict = search.Inconclusive
	}
	if !failed && out.Verdict == search.Inconclusive && (l.seen.full(search.Nearly) || l.noneHelps() || l.nearly()) {
		out.Verdict = search.NoChange
	}
	if failed && !out.Shown {
		out.Verdict = search.Inconclusive
	}
	if target, ok := l.proof.target(); ok && (out.Shown || !failed) {
		l.change(target)
	}
	switch {
	case out.Before.Interval.Mid <= nothing:
		out.Gain = nil // it is no factor
	case out.After != nil && out.Gain != nil && l.cfg.Goal.isThroughput():
		printed := printedGain(&out.Before, out.After, *out.Gain)
		switch {
		case l.proof.shown && !l.proof.asFast:
			printed.Low = max(printed.Low, math.Nextafter(1, 2))
		case l.proof.probability > 0 && !l.proof.shown:
			printed.Low = min(printed.Low, 1) // a gain that is not shown may be none
		}
		out.Gain = &printed
	}
	out.Trials = l.seen.judgedTogether(out)
	out.Remedies = l.remedies()
	out.Disturbed = l.disturbed()
	if l.disturbanceExplains() && !out.Interrupted {
		out.Reason = Statement{Code: HostDisturbed}
		out.Verdict = search.Inconclusive
	} else {
		out.Reason, out.Open = l.reason()
		out.Disturbed = nil
	}
	out.Decision = l.decision()
	if l.cfg.FileSize > 0 {
		out.File = l.file()
	}
}

// printedGain returns a gain as a reader computes it from the goodputs before and after. Its interval is that of
// the comparison in turn. Where that excludes this factor, as with pairs whose baseline was unlucky, it is that of
// all runs.
func printedGain(before, after *Measured, inTurn stats.Interval) stats.Interval {
	factor := after.Interval.Mid / before.Interval.Mid
	if !(inTurn.Low <= factor && factor <= inTurn.High) {
		inTurn = stats.Shift(before.Goodputs, after.Goodputs, confidence)
	}
	return stats.Interval{Low: min(inTurn.Low, factor), Mid: factor, High: max(inTurn.High, factor)}
}

// remedies returns the compared setups, and those that were measured in one run only. Goodputs and gains are those of
// the same runs as before and after.
func (l *loop) remedies() []Remedy {
	all := slices.Clone(l.compared.remedies)
	for i := range all {
		r := &all[i]
		base := l.seen.measured(l.seen.runsOf(r.Base))
		runs := l.seen.runsOf(r.Setup)
		if l.cfg.Goal.isThroughput() && base.Interval.Mid > nothing && len(runs) > 0 {
			with := l.seen.measured(runs)
			r.Goodput = with.Interval.Mid
			r.Gain = printedGain(&base, &with, r.Gain)
			if c := l.out.Chosen; c != nil && c.Setup == r.Setup && (l.proof.shown || l.proof.probability > 0) {
				r.Gain = *l.out.Gain
				r.Runs = max(r.Runs, len(l.seen.turns(r.Setup)))
			}
		}
		all[i].Name = l.granted(all[i].Setup).String()
		all[i].Base = l.granted(all[i].Base)
	}
	for _, probed := range l.compared.below.remedies() {
		if !slices.ContainsFunc(all, func(r Remedy) bool { return r.Setup == probed.Setup }) {
			all = append(all, probed)
		}
	}
	return all
}

// warnings returns the notes; they name the windows that were granted.
func (l *loop) warnings() []Statement {
	all := *l.notes
	for i := range all {
		all[i].Setup = l.granted(all[i].Setup)
	}
	return all
}

// granted returns a setup with the window that came of its request.
func (l *loop) granted(s Setup) Setup {
	if a := &l.windows.answer; s.Window > 0 && s.Window == a.Asked && a.Window > 0 {
		s.Window = a.Window
	}
	return s
}

// change compares before with the chosen setup.
func (l *loop) change(target Setup) {
	out := &l.out
	chosen := Chosen{Setup: target}
	if target.Window > 0 {
		window := l.granted(target).Window
		chosen = l.sockets.buffers(window)
		chosen.Setup = target
		chosen.Window = window
	}
	after := l.seen.measured(l.seen.runsOf(target))
	if len(after.Goodputs) == 0 {
		return
	}
	if out.Gain == nil {
		out.Gain = l.proof.gainOf(out.Before.Goodputs, after.Goodputs)
	}
	out.Verdict = search.Change
	out.Chosen = &chosen
	out.After = &after
	if ratio := after.Retransmits; ratio != nil && *ratio > muchRetransmitted {
		values := verdict.Values{"retransmitted": *ratio}
		if before := out.Before.Retransmits; before != nil {
			values["retransmitted_before"] = *before
		}
		l.notes.add(Statement{Code: RetransmitsMuch, Setup: target, Values: values})
	}
	unproven := out.Gain.Low <= 1 && !math.IsNaN(out.Gain.Mid) && len(after.Goodputs) > 1
	if l.compared.winner != (Setup{}) || l.cfg.Goal == Fair {
		out.Shown = l.proof.shown
		unproven = !l.proof.shown && l.proof.probability == 0
	}
	if !unproven {
		return
	}
	out.Verdict = search.Inconclusive
	out.Shown = false
	out.Chosen = nil
	out.After = nil
	if o := out.Others; o != nil {
		l.notes.add(Statement{Code: TakesMoreThanGains, Setup: target,
			Values: verdict.Values{"factor": out.Gain.Mid, "others": o.Factor}})
		return
	}
	l.notes.add(Statement{Code: GainUnproven, Setup: target,
		Values: verdict.Values{"low": out.Gain.Low, "high": out.Gain.High}})
}

// noneHelps reports that all candidates were decided: none helps by enough to matter, and no window may either.
func (l *loop) noneHelps() bool {
	noWindow := l.windows.searched == nil || l.windows.answer.Verdict == search.NoChange
	return l.compared.noRemedyHelped && l.compared.winner == (Setup{}) && noWindow &&
		promising(l.compared.remedies) == nil
}

// file is how long a transfer of the stated size takes.
func (l *loop) file() *record.TuneFile {
	p := l.path
	takes := func(goodput float64) units.Duration {
		return units.Duration(model.TransferTime(float64(l.cfg.FileSize), goodput, p.RTT, p.MSS))
	}
	if l.out.Before.Interval.Mid <= nothing {
		return nil
	}
	f := &record.TuneFile{Bytes: l.cfg.FileSize, Before: takes(l.out.Before.Interval.Mid)}
	goodput := l.out.Before.Interval.Mid
	f.After = f.Before
	if l.out.Chosen != nil {
		goodput = l.out.After.Interval.Mid
		f.After = takes(goodput)
	}
	steady := p.RTT.Seconds() + float64(f.Bytes)*8/goodput
	if f.After.Seconds() >= tenth*steady {
		f.InitialWindow = model.LargerInitialWindow(f.Bytes, p.CapacityBps, p.RTT, p.MSS)
	}
	return f
}

// disturbed is what disturbed the measurement; nil where that was of no weight. A processor that the
// transfers themselves fill is what limits, no disturbance: they run then more than they wait.
func (l *loop) disturbed() *record.TuneDisturbed {
	d := &record.TuneDisturbed{LateLab: l.cfg.Late != nil && l.cfg.Late()}
	for _, near := range []bool{true, false} {
		var starved, ran, busy []float64
		for _, t := range l.seen.of(func(t *Trial) bool { return t.result != nil }) {
			end := t.result.Near
			if !near {
				end = t.result.Far
			}
			if end == nil || end.CPU == nil || end.CPU.Wall <= 0 {
				continue
			}
			starved = append(starved, end.CPU.RunqueueWait)
			ran = append(ran, end.CPU.BusiestThread)
			if end.CPU.Host != nil {
				busy = append(busy, *end.CPU.Host)
			}
		}
		share := stats.Median(starved)
		if len(starved) == 0 || share < threshold.RunDelay.Value || share < stats.Median(ran) ||
			share < record.OrZero(d.NearStarved) {
			continue
		}
		if near {
			d.NearStarved = &share
		} else {
			d.NearStarved = nil
			d.FarStarved = &share
		}
		d.HostBusy = nil
		if usage := stats.Median(busy); usage > 0 {
			d.HostBusy = &usage
		}
	}
	if !d.LateLab && d.NearStarved == nil && d.FarStarved == nil {
		return nil
	}
	return d
}

// disturbanceExplains reports that a negative or open answer may come from the disturbance. A
// gain that was shown in turn is right in spite of it, as is a link that was seen full.
func (l *loop) disturbanceExplains() bool {
	out := &l.out
	switch {
	case out.Disturbed == nil || out.Chosen != nil || l.seen.isBlackHole() || len(out.Trials) < fewestToJudge:
		return false
	case out.Verdict == search.NoChange && len(out.Remedies) == 0:
		return out.Before.Verdict.Limiter != verdict.Bottleneck
	}
	return true
}
