package text

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Tune prints the report.
func Tune(w io.Writer, d *record.Tune) {
	for i := range d.Directions {
		writeHeadline(w, tuneHeadline(&d.Directions[i]))
	}
	spaceAfter(w, len(d.Directions))
	t := newTable()
	t.row("peer", d.Peer)
	t.row("near", HostText(d.Near))
	t.row("far", HostText(d.Far))
	t.write(w, "")
	for i := range d.Directions {
		fmt.Fprintln(w)
		writeTuneDirection(w, &d.Directions[i])
	}
	fmt.Fprintf(w, "\n%s moved in %s; %s\n", units.Size(d.BytesSent), SecondsText(d.ElapsedS), tuneChanged(d))
}

func tuneChosenName(c *record.TuneChosen) string {
	if c.CongestionControl == "" && c.Streams == 0 && c.WindowBytes > 0 {
		return "a window of " + units.Size(c.WindowBytes).Exact()
	}
	return c.Name
}

func writeTuneDirection(w io.Writer, d *record.TuneDirection) {
	fmt.Fprintf(w, "%s\n\n", Heading(d.Direction))
	tuneFound(d).write(w, "  ")

	fmt.Fprintln(w, "\n  tried")
	tuneDirectionWriteTrials(w, d)
	tuneDirectionWriteRemedies(w, d)

	fmt.Fprintln(w)
	tuneOutcome(d).write(w, "  ")
	for _, s := range tuneSettings(d) {
		fmt.Fprintf(w, "\n  %s\n", s.title)
		s.write(w)
	}
	if d.Applied != nil {
		writeTuneApplied(w, d.Applied)
	}
}

// tuneFound returns the rows of the path, its baseline and its limiter.
func tuneFound(d *record.TuneDirection) *table {
	top := newTable()
	tunePathRows(&d.Path, top)
	top.row("", "")
	top.row("before", tuneMeasuredText(&d.Before))
	top.row("limited by", Verdict(&d.Before.Direction))
	for _, e := range d.Before.Evidence {
		top.row("", Sentence(e))
	}
	lostTable(top, &d.Before.Direction)
	return top
}

// tuneOutcome returns the rows of the result.
func tuneOutcome(d *record.TuneDirection) *table {
	end := newTable()
	if d.After != nil && d.Chosen != nil {
		end.row("after", tuneMeasuredText(d.After))
		end.row("limited by", Verdict(&d.After.Direction))
	}
	if d.Gain != nil && d.Chosen != nil {
		text := "× " + factor(d.Gain.Factor) + confidenceText(d.Gain.CI95)
		if d.Others != nil {
			text += ", next to another flow"
		}
		end.row("gain", text)
	}
	if o := d.Others; o != nil {
		end.row("others keep", fmt.Sprintf("%s of %s: × %s", units.Rate(o.AfterBps), units.Rate(o.BeforeBps),
			factor(o.Factor))+confidenceText(o.CI95))
	}
	if d.Delay != nil && d.Chosen != nil {
		end.row("under load", fmt.Sprintf("%s before, %s after: × %s", d.Delay.Before,
			d.Delay.After, factor(d.Delay.Factor))+confidenceText(d.Delay.CI95))
	}
	if d.File != nil {
		end.row("file", tuneFileText(d.File))
	}
	end.row("verdict", tuneVerdict(d))
	end.row("do", tuneDo(d))
	for i, line := range tuneDirectionWorthDoing(d) {
		end.row([]string{"worth trying", ""}[min(i, 1)], line)
	}
	if d.Interrupted {
		end.row("", "interrupted: this is the result up to then")
	}
	for _, warning := range d.Warnings {
		end.row("note", warning)
	}
	return end
}

// confidenceText formats a factor's interval; "" if it has none.
func confidenceText(ci *[2]float64) string {
	if ci == nil {
		return ""
	}
	return fmt.Sprintf("   (× %s to × %s with 95 %% confidence)", factor(ci[0]), factor(ci[1]))
}

func tunePathRows(p *record.TunePath, t *table) {
	var trip []string
	if p.RTTMin > 0 {
		trip = append(trip, "round trip "+p.RTTMin.String())
		if p.Jitter != nil && p.Jitter.Seconds() > 0.02*p.RTTMin.Seconds() {
			trip = append(trip, "jitter "+p.Jitter.String())
		}
	}
	if p.RTTLoaded > 0 {
		trip = append(trip, p.RTTLoaded.String()+" under load")
	}
	if p.MSSBytes > 0 {
		trip = append(trip, fmt.Sprintf("MSS %d", p.MSSBytes))
	}
	if p.PathMTUBytes > 0 {
		trip = append(trip, fmt.Sprintf("path MTU %d", p.PathMTUBytes))
	}
	t.row("path", strings.Join(trip, ", "))
	if p.BottleneckBps == 0 || p.CapacityBps == 0 || p.BDPBytes == 0 || p.WindowBytes == 0 {
		return
	}
	carries := "carries "
	if p.AtLeast {
		carries = "carries at least "
	}
	t.row("", fmt.Sprintf("%s%s at the IP layer, %s of payload", carries, units.Rate(p.BottleneckBps),
		units.Rate(p.CapacityBps)))
	segments := ""
	if p.MSSBytes > 0 {
		segments = fmt.Sprintf(" = %d × %d", p.WindowBytes/p.MSSBytes, p.MSSBytes)
	}
	t.row("", fmt.Sprintf("so %s must be in flight to fill the path (window: %s%s)", units.Size(p.BDPBytes),
		units.Size(p.WindowBytes).Exact(), segments))
}

func tuneMeasuredText(m *record.TuneMeasured) string {
	text := units.Rate(m.MedianBps).String()
	runs := fmt.Sprintf("%d runs", m.Runs)
	if m.Runs == 1 {
		runs = "one run"
	}
	if m.CI95Bps != nil {
		runs = fmt.Sprintf("%s to %s, %s", units.Rate(m.CI95Bps[0]), units.Rate(m.CI95Bps[1]), runs)
	}
	return text + "   (" + runs + ")"
}

func tuneVerdict(d *record.TuneDirection) string {
	switch {
	case d.Chosen != nil && !d.Chosen.Automatic:
		return tuneChosenName(d.Chosen) + ": " + d.Reason
	// by its own settings or by a change of the hosts
	case d.Verdict == search.NoChange, d.Verdict == search.Change:
		return d.Reason
	}
	return "inconclusive, no change: " + d.Reason + tuneTried(d)
}

// tuneTried lists what an open decision is based on; "" where nothing was tried.
func tuneTried(d *record.TuneDirection) string {
	if d.Decision == nil || len(d.Decision.Tried) == 0 {
		return ""
	}
	return "; tried: " + strings.Join(d.Decision.Tried, "; ")
}

// tuneDirectionWorthDoing returns the remedies with a proven gain of 10 % over the baseline and over the chosen
// setup.
func tuneDirectionWorthDoing(d *record.TuneDirection) (lines []string) {
	var chosen float64
	if d.After != nil {
		chosen = d.After.MedianBps
	}
	for _, r := range d.Remedies {
		chosenAlready := d.Chosen != nil && d.Chosen.Name == r.Name
		if !chosenAlready && r.CI95 != nil && r.CI95[0] > 1 && r.Factor >= 1.1 && r.GoodputBps >= 1.1*chosen {
			lines = append(lines, fmt.Sprintf("%s, which gave %s (× %s)", r.Name, units.Rate(r.GoodputBps), factor(r.Factor)))
		}
	}
	return lines
}

// tuneDo formats the action: to set the chosen settings, else the verdict's remedy.
func tuneDo(d *record.TuneDirection) string {
	if tuneIsInForce(d) {
		return "nothing more: the change below is in force"
	}
	if d.Chosen == nil || d.Chosen.Automatic {
		return doAbout(d.Fix, d.Before.Verdict)
	}
	text := "set one of the recipes below for " + cmp.Or(d.Chosen.Name, "the window")
	if d.IsLikely() {
		text += ", which is not yet proven"
	}
	return text
}

func tuneFileText(f *record.TuneFile) string {
	text := units.Size(f.Bytes).String() + " take " + long(f.Before.Seconds())
	if f.After < f.Before {
		text += " before, " + long(f.After.Seconds()) + " after"
	}
	if f.InitialWindow > 0 {
		text += fmt.Sprintf("; slow start is much of that: ip route change … initcwnd %d at the sender, initrwnd %d at the "+
			"receiver", f.InitialWindow, f.InitialWindow)
	}
	return text
}

// long prints a time that may last for days.
func long(s float64) string {
	d := units.Seconds(s)
	switch {
	case d < 100*time.Second:
		return units.Time(d)
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

func factor(f float64) string {
	switch {
	case f < 10:
		return fmt.Sprintf("%.2f", f)
	case f < 100:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.0f", f)
}

func exact(n int) string { return strings.TrimSuffix(units.Size(n).Exact(), " bytes") }
