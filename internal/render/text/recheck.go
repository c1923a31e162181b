package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Recheck prints a line for each test and each event.
func Recheck(w io.Writer, r *record.Recheck) {
	t := newTable(3)
	for i := range r.Tests {
		recheckRows(t, &r.Tests[i])
	}
	t.write(w, "")
	for i := range r.Events {
		fmt.Fprintln(w, RecheckSentence(&r.Events[i]))
	}
	if r.Interrupted {
		fmt.Fprintln(w, "interrupted")
	}
}

func recheckRows(t *table, one *record.RecheckTest) {
	when := one.At.UTC().Format("2006-01-02 15:04:05")
	far := one.Far
	note := ""
	if one.Origin == record.Retest {
		note = "tested again"
	}
	switch {
	case one.Skipped != "":
		why := SkippedText(one.Skipped)
		if one.NextAt != nil && one.Skipped == "policy" {
			why += one.NextAt.UTC().Format(": the next one from 2006-01-02 15:04 UTC on")
		}
		t.row(when, far, "", "–", "", "", "not tested: "+why)
		return
	case one.Error != nil:
		t.row(when, far, "", "–", "", "", "failed: "+one.Error.Message)
		return
	}
	for i := range one.Directions {
		d := &one.Directions[i]
		goodput := "–"
		usual := ""
		if d.GoodputBps != nil {
			goodput = units.Rate(*d.GoodputBps).String()
		}
		switch {
		case d.UsualBps != nil:
			usual = "usual " + units.Rate(*d.UsualBps).String()
		default:
			usual = fmt.Sprintf("%d of %d results known", d.Results, fewestKnown)
		}
		parts := slices.DeleteFunc([]string{note, stateText(d.State)}, func(s string) bool { return s == "" })
		t.row(when, far, d.Direction, goodput, usual, d.Limiter, strings.Join(parts, ", "))
		when = ""
		far = ""
		note = ""
	}
}

// fewestKnown is the number of results that a suspicion needs (change.Track).
const fewestKnown = 12

func stateText(state changepoint.State) string {
	if state == changepoint.Usual {
		return ""
	}
	return string(state)
}

var skips = map[string]string{
	"quiet-hours": "quiet hours",
	"bytes-budget": "the limit of bytes per day leaves too little for this test and its " +
		"possible re-tests",
	"time-budget": "the limit of time per day leaves too little for this test and its " +
		"possible re-tests",
	"busy":   "another process tests this far end",
	"policy": "public ndt7 servers are tested 6 hours apart in the mean",
}

// SkippedText returns the reason why a due test did not run.
func SkippedText(code string) string {
	if text := skips[code]; text != "" {
		return text
	}
	return code
}

// RecheckSentence formats an event.
func RecheckSentence(e *record.RecheckEvent) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Event, e.Far)
	if e.Direction != "" {
		b.WriteString(" " + e.Direction)
	}
	b.WriteString(": " + recheckChange(e))
	if !e.Since.IsZero() && e.Event != "back" {
		fmt.Fprintf(&b, ", since %s", e.Since.UTC().Format("2006-01-02 15:04 UTC"))
	}
	if e.P != nil {
		fmt.Fprintf(&b, " (%s confidence)", e.Confidence)
	}
	if e.Event == "dip" || e.Event == "rise" {
		b.WriteString("; the next tests show if it persists")
	}
	if e.Plan != nil {
		b.WriteString("; " + recheckPlan(e.Plan))
	}
	return b.String()
}

func recheckChange(e *record.RecheckEvent) string {
	switch {
	case e.Metric == "goodput" && e.BeforeBps != nil && e.AfterBps != nil && e.Event == "back":
		return "goodput is back to its old value, " + units.Rate(*e.BeforeBps).String()
	case e.Metric == "goodput" && e.BeforeBps != nil && e.AfterBps != nil:
		return fmt.Sprintf("%s instead of %s", units.Rate(*e.AfterBps), units.Rate(*e.BeforeBps))
	case e.Metric == "rtt" && e.BeforeRTTMinS != nil && e.AfterRTTMinS != nil && e.Event == "back":
		return "the minimum RTT is back to its old value, " + SecondsText(*e.BeforeRTTMinS)
	case e.Metric == "rtt" && e.BeforeRTTMinS != nil && e.AfterRTTMinS != nil:
		return fmt.Sprintf("minimum RTT %s instead of %s", SecondsText(*e.AfterRTTMinS),
			SecondsText(*e.BeforeRTTMinS))
	case e.Metric == "limiter":
		return fmt.Sprintf("limited by %s instead of %s", e.After, e.Before)
	}
	names := map[string]string{"mtu": "path MTU", "handshake": "the ends settle on", "far_kernel": "the far end runs"}
	name := names[e.Metric]
	if name == "" {
		name = e.Metric
	}
	return fmt.Sprintf("%s %s instead of %s", name, e.After, e.Before)
}

func recheckPlan(p *record.RecheckPlan) string {
	needs := fmt.Sprintf("at %s and %s the path needs windows of %s", units.Rate(p.RateBps), SecondsText(p.RTTMinS),
		units.Size(p.WindowBytes))
	if p.Fits {
		return "the settings that fullpipe applied (" + strings.Join(p.Applied, ", ") + ") still suffice: " + needs
	}
	var all []string
	for _, s := range p.Settings {
		all = append(all, s.Name+" = "+s.Value)
	}
	return "the settings that fullpipe applied (" + strings.Join(p.Applied, ", ") + ") no longer suffice: " + needs +
		", and it would take " + strings.Join(all, ", ")
}
