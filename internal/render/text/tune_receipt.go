package text

import (
	"cmp"
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// TuneReceipt is one direction of a tune in parts, for a page. As in the text, a row is a label, which may be
// empty, and its value.
type TuneReceipt struct {
	Heading, Stamp string
	Headline       string
	Shown          bool // the stamp is a gain
	Found, Outcome [][]string
	Trials         []TuneReceiptTrial
	RemediesTitle  string
	Remedies       [][]string
	Settings       []TuneReceiptSettings
	Applied        [][]string
	Axis           ReceiptAxis
}

// ReceiptAxis has the values before and after on one axis from 0 to Full.
type ReceiptAxis struct {
	Title    string // the quantity
	Bars     []ReceiptBar
	Mark     float64 // the path's capacity; 0: not known
	MarkText string
	Full     float64
}

// ReceiptBar is one value with its 95 % interval, which may be 0 to 0, and its limiter.
type ReceiptBar struct {
	Label, Class, Text, Limiter string
	Value, Low, High            float64
}

// TuneReceiptTrial has all transfers with one window; Percent is the share of the fastest one's goodput.
type TuneReceiptTrial struct {
	Window, Goodput, Limiter, Note string
	Runs                           int
	Percent                        float64
}

// TuneReceiptSettings has the settings for one host.
type TuneReceiptSettings struct {
	Title string
	Rows  [][]string
}

// TuneReceiptOf returns the parts of a direction.
func TuneReceiptOf(d *record.TuneDirection) TuneReceipt {
	r := TuneReceipt{Heading: Heading(d.Direction), Headline: tuneHeadline(d).String(),
		Found: tuneFound(d).said(), Outcome: tuneOutcome(d).said(),
		Axis: receiptAxis(d)}
	switch {
	case d.Chosen != nil && !d.Chosen.Automatic && d.Delay != nil:
		r.Stamp = "round trip × " + factor(d.Delay.Factor)
		r.Shown = true
	case d.Chosen != nil && !d.Chosen.Automatic && d.Gain != nil:
		r.Stamp = "× " + factor(d.Gain.Factor)
		r.Shown = !d.IsLikely()
		if d.IsLikely() {
			r.Stamp += ", likely"
		}
	case d.Verdict == search.NoChange:
		r.Stamp = "nothing to change"
	default:
		r.Stamp = "no change"
	}
	all := tuneDirectionTried(d)
	best := 0.0
	for _, t := range all {
		best = max(best, stats.Typical(t.goodputs))
	}
	for _, t := range all {
		goodput := stats.Typical(t.goodputs)
		r.Trials = append(r.Trials, TuneReceiptTrial{Window: t.label, Goodput: units.Rate(goodput).String(),
			Limiter: t.limiter, Note: t.note, Runs: len(t.goodputs), Percent: 100 * goodput / max(best, 1)})
	}
	if table := tuneRemedies(d); table != nil {
		r.RemediesTitle = tuneRemediesHeading(d)
		r.Remedies = table.rows
	}
	for _, s := range tuneSettings(d) {
		r.Settings = append(r.Settings, TuneReceiptSettings{s.title, s.table.said()})
	}
	if a := d.Applied; a != nil {
		table := newTable()
		for _, c := range append(append([]record.HostChange{}, a.Changes...), a.Far...) {
			table.row(c.Name, fmt.Sprintf("%s → %s: %s", orNone(c.Old), orNone(c.New), c.Outcome))
		}
		for _, row := range tuneAppliedRows(a).rows {
			table.row(row...)
		}
		r.Applied = table.said()
	}
	return r
}

// receiptAxis puts before and after on the axis of the tune's goal.
func receiptAxis(d *record.TuneDirection) ReceiptAxis {
	bar := func(label, class string, m *record.TuneMeasured) ReceiptBar {
		b := ReceiptBar{Label: label, Class: class, Text: units.Rate(m.MedianBps).String(), Value: m.MedianBps,
			Limiter: string(m.Limiter)}
		if m.CI95Bps != nil {
			b.Low = m.CI95Bps[0]
			b.High = m.CI95Bps[1]
		}
		return b
	}
	a := ReceiptAxis{Title: "goodput", Bars: []ReceiptBar{bar("before", "before", &d.Before)}, Mark: d.Path.CapacityBps}
	if a.Mark > 0 {
		a.MarkText = "the path carries " + units.Rate(a.Mark).String() + " of payload"
		if d.Path.AtLeast {
			a.MarkText = "the path carries at least " + units.Rate(a.Mark).String() + " of payload"
		}
	}
	if d.After != nil && d.Chosen != nil {
		a.Bars = append(a.Bars, bar("after", "data", d.After))
	}
	if d.Delay != nil && d.Chosen != nil {
		a = ReceiptAxis{Title: "round trip under load", Bars: []ReceiptBar{
			{Label: "before", Class: "before", Text: d.Delay.Before.String(), Value: d.Delay.Before.Seconds()},
			{Label: "after", Class: "data", Text: d.Delay.After.String(), Value: d.Delay.After.Seconds()}}}
	}
	a.Full = a.Mark
	for _, b := range a.Bars {
		a.Full = max(a.Full, b.Value, b.High)
	}
	if !(a.Full > 0) {
		a.Full = 1
	}
	return a
}

func orNone(value *string) string {
	if value == nil {
		return "none"
	}
	return cmp.Or(*value, "none")
}

// said returns a table's rows without empty ones.
func (t *table) said() (rows [][]string) {
	for _, row := range t.rows {
		if len(row) > 1 && row[len(row)-1] != "" {
			rows = append(rows, row)
		}
	}
	return rows
}

// TuneChanged formats the changes of the hosts and the command that undoes them.
func TuneChanged(d *record.Tune) string { return tuneChanged(d) }
