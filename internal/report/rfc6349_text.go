package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// WriteText prints the test for a person.
func (r *RFC6349) WriteText(w io.Writer) {
	t := newTable()
	if r.Reference != "" {
		t.row("reference", r.Reference)
	}
	t.row("peer", r.Peer)
	t.row("near", r.Near.text())
	t.row("far", r.Far.text())
	t.row("when", r.When())
	if r.Committed != nil {
		t.row("committed", r.CommittedText())
	}
	t.row("path MTU", r.MTUText())
	t.row("round trip", r.RTTText())
	t.row("segments", r.SegmentsText())
	t.write(w, "")
	for i := range r.Directions {
		fmt.Fprintln(w)
		r.Directions[i].writeText(w)
	}
	if len(r.Formulas) > 0 {
		fmt.Fprintln(w, "\nARITHMETIC")
		formulas := newTable()
		for _, f := range r.Formulas {
			formulas.row(fmt.Sprintf("%-4s %s", f.Direction, f.Name), f.Text)
		}
		formulas.write(w, "  ")
	}
	fmt.Fprintln(w)
	end := newTable()
	for _, warning := range r.Warnings {
		end.row("note", warning)
	}
	for _, limit := range r.Limits() {
		end.row("note", limit)
	}
	if r.Interrupted {
		end.row("interrupted", "these figures are of the part that was measured")
	}
	end.row("cost", fmt.Sprintf("%s, %s moved", secondsText(r.ElapsedS), units.Size(r.BytesSent)))
	end.row("verdict", r.VerdictText())
	end.write(w, "")
}

// When is the span of the test.
func (r *RFC6349) When() string {
	return r.StartedAt.UTC().Format("2006-01-02 15:04:05") + " to " + r.EndedAt.UTC().Format("15:04:05 MST")
}

// CommittedText is what the line is held to.
func (r *RFC6349) CommittedText() string {
	c := r.Committed
	text := ""
	switch {
	case c.UpBps != nil && c.DownBps != nil && *c.UpBps == *c.DownBps:
		text = units.Rate(*c.UpBps).String() + " each way"
	case c.UpBps != nil && c.DownBps != nil:
		text = units.Rate(*c.UpBps).String() + " up, " + units.Rate(*c.DownBps).String() + " down"
	case c.UpBps != nil:
		text = units.Rate(*c.UpBps).String() + " up"
	case c.DownBps != nil:
		text = units.Rate(*c.DownBps).String() + " down"
	}
	layer := "at the IP layer"
	if c.OverheadBytes > 0 {
		layer = fmt.Sprintf("with %d bytes of framing for each packet", c.OverheadBytes)
	}
	return fmt.Sprintf("%s %s, tolerance %g %%", text, layer, 100*c.ToleranceRatio)
}

// MTUText, RTTText and SegmentsText are the idle path in words.
func (r *RFC6349) MTUText() string {
	if r.Path.MTUBytes == nil {
		return "not known"
	}
	return fmt.Sprintf("%d bytes (%s)", *r.Path.MTUBytes, r.Path.MTUMethod)
}

func (r *RFC6349) RTTText() string {
	if r.Path.RTTMinS == nil {
		return "not known"
	}
	text := secondsText(*r.Path.RTTMinS) + " least, idle (" + r.Path.RTTMethod
	if r.Path.RTTSamples != nil {
		text += fmt.Sprintf(", %d samples", *r.Path.RTTSamples)
	}
	text += ")"
	if r.Path.JitterS != nil {
		text += ", jitter " + secondsText(*r.Path.JitterS)
	}
	return text
}

func (r *RFC6349) SegmentsText() string {
	if r.Path.MSSBytes == nil || r.Path.HeaderBytes == nil {
		return "not known"
	}
	options := "without timestamps"
	if r.Path.Timestamps {
		options = "with timestamps (12 bytes)"
	}
	return fmt.Sprintf("%d bytes of payload and %d of IP and TCP headers, %s", *r.Path.MSSBytes, *r.Path.HeaderBytes, options)
}

// VerdictText is the sign-off in words.
func (r *RFC6349) VerdictText() string {
	switch r.Verdict {
	case rfc6349.Pass:
		return "pass: the line carries what was committed to"
	case rfc6349.Fail:
		return "fail: the line does not carry what was committed to"
	case rfc6349.Inconclusive:
		return "inconclusive: not everything that was asked could be shown"
	}
	return "not judged: no rate was committed to (--cir)"
}

// Limits are what the test is short of by its standards.
func (r *RFC6349) Limits() (all []string) {
	if r.RunS > 0 && r.RunS < rfc6349.AdvisedTime.Seconds() {
		all = append(all, fmt.Sprintf("each run lasted %s; RFC 6349 (3.3) asks for 30 s (--time 30s)", secondsText(r.RunS)))
	}
	if len(r.frames.Sizes) > 0 {
		trial := r.frames.Time
		text := fmt.Sprintf("frames count from address to check sequence; each trial lasted %s and allowed %.2g %% of loss", units.Time(trial), 100*r.frames.Loss)
		if trial < rfc6349.AdvisedTrial || r.frames.Loss > 0 {
			text += ": RFC 2544 (24, 26.1) asks for 60 s and no loss"
		}
		all = append(all, text+"; the ends are hosts and no test sets: what they cannot send or take is not held against the line")
	}
	return all
}

func (d *RFC6349Direction) writeText(w io.Writer) {
	fmt.Fprintln(w, Heading(d.Direction))
	t := newTable()
	t.row("bottleneck", d.BottleneckText())
	if d.BDPBytes != nil {
		t.row("BDP", units.Size(*d.BDPBytes).Exact())
	}
	if d.MaxTCPBps != nil {
		t.row("largest TCP rate", rateText(d.MaxTCPBps)+", "+d.ReferenceText())
	}
	t.write(w, "  ")
	if len(d.Tests) > 0 {
		fmt.Fprintln(w)
		tests := newTable(1, 2, 3, 4, 5, 6, 7)
		tests.row(TestColumns()...)
		for i := range d.Tests {
			tests.row(d.Tests[i].Cells()...)
		}
		tests.write(w, "  ")
	}
	if len(d.Frames) > 0 {
		fmt.Fprintln(w)
		frames := newTable(0, 1, 2, 3, 4)
		frames.row("frame", "frames/s", "due", "rate", "lost", "verdict")
		for i := range d.Frames {
			frames.row(d.Frames[i].Cells()...)
		}
		frames.write(w, "  ")
	}
	if len(d.Criteria) > 0 {
		fmt.Fprintln(w)
		criteria := newTable()
		for i := range d.Criteria {
			c := &d.Criteria[i]
			criteria.row(c.VerdictText(), c.Title()+": "+c.Text())
		}
		criteria.write(w, "  ")
	}
}

// BottleneckText is the bandwidth and how it was found.
func (d *RFC6349Direction) BottleneckText() string {
	b := d.Bottleneck
	if b == nil {
		return "not measured"
	}
	text := units.Rate(b.Bps).String() + " at the IP layer"
	if b.AtLeast {
		text = "at least " + text
	}
	if b.Burst != nil {
		text += ", after a burst of " + units.Size(*b.Burst).String()
	}
	return text + " (" + b.Method + ")"
}

// ReferenceText is the rate that the largest TCP rate follows from.
func (d *RFC6349Direction) ReferenceText() string {
	if d.direction.Committed > 0 {
		return "of the committed " + units.Rate(d.direction.Committed).String()
	}
	return "of the bottleneck"
}

// Title of a test: what was connected.
func (t *RFC6349Test) Title() string {
	switch {
	case t.Kind == rfc6349.Automatic:
		return "automatic"
	case t.Kind == rfc6349.Full:
		return "one connection"
	case t.Kind == rfc6349.Several:
		return fmt.Sprintf("%d connections", t.Connections)
	case t.Kind == rfc6349.Both:
		return "both directions"
	}
	return "window"
}

// TestColumns head the rows of tests.
func TestColumns() []string {
	return []string{"test", "window", "of BDP", "goodput of achievable", "ratio", "settled", "efficiency", "delay", "limited by"}
}

// Cells are the row of a test in tables.
func (t *RFC6349Test) Cells() []string {
	window, share := "auto", "–"
	if t.WindowBytes != nil {
		window = units.Size(*t.WindowBytes).String()
	}
	if t.BDPRatio != nil {
		share = fmt.Sprintf("%.0f %%", 100**t.BDPRatio)
	}
	cells := []string{t.Title(), window, share}
	if t.test.Typical() == nil {
		return append(cells, "–", "–", "–", "–", "–", t.Skipped)
	}
	efficiency, delay := "–", "–"
	run := t.Typical()
	if run.EfficiencyRatio != nil {
		efficiency = fmt.Sprintf("%.2f %%", 100**run.EfficiencyRatio)
	}
	if run.BufferDelayRatio != nil {
		delay = fmt.Sprintf("%.0f %%", 100**run.BufferDelayRatio)
	}
	limited := string(t.Limiter)
	switch {
	case t.Kind == rfc6349.Window && t.Limiter == limiter.ReceiverWindow:
		limited = "this window"
	case t.Subtype == limiter.Policer:
		limited = t.Subtype
	}
	return append(cells, span(rateText(t.GoodputBps), " of ", rateText(t.AchievableBps)), ratioText(run.TimeRatio), ratioText(run.SteadyTimeRatio), efficiency, delay, limited)
}

// span joins two quantities, their unit once where they share it.
func span(low, between, high string) string {
	if _, unit, ok := strings.Cut(high, " "); ok {
		low = strings.TrimSuffix(low, " "+unit)
	}
	return low + between + high
}

func ratioText(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.3f", *v)
}

// Typical is the run with the middle rate, whose metrics stand for the test.
func (t *RFC6349Test) Typical() *RFC6349Run {
	typical := t.test.Typical()
	for i := range t.test.Runs {
		if &t.test.Runs[i] == typical {
			return &t.Runs[i]
		}
	}
	return nil
}

// Cells are the row of a frame size in tables.
func (f *RFC6349Frame) Cells() []string {
	verdict := string(f.Verdict)
	if f.Reason != "" {
		verdict += ": " + f.Reason
	}
	cells := []string{fmt.Sprintf("%d B", f.FrameBytes), "–", "–", "–", "–", verdict}
	if f.Due != nil {
		cells[2] = thousands(int64(*f.Due))
	}
	if f.FramesPerSec != nil {
		cells[1], cells[3], cells[4] = thousands(int64(*f.FramesPerSec)), rateText(f.Bps), fmt.Sprintf("%.2g %%", 100**f.LossRatio)
	}
	return cells
}

// VerdictText is the verdict in words.
func (c *RFC6349Criterion) VerdictText() string {
	return strings.ReplaceAll(string(c.Verdict), "-", " ")
}

// Title of a criterion.
func (c *RFC6349Criterion) Title() string {
	switch c.Name {
	case "bandwidth":
		return "bandwidth at the IP layer"
	case string(rfc6349.Full):
		return "TCP, one connection"
	case string(rfc6349.Several):
		return "TCP, several connections"
	case string(rfc6349.Both):
		return "TCP, both directions at once"
	case "efficiency":
		return "TCP Efficiency"
	case "buffer-delay":
		return "Buffer Delay"
	}
	return c.Name
}

// Text is what was measured, what was asked and why that is so.
func (c *RFC6349Criterion) Text() string {
	text := c.MeasuredText()
	if c.Required > 0 {
		text += "; " + c.AskedText() + " asked"
	}
	if c.Reason != "" {
		text += "; " + c.Reason
	}
	return text
}

// MeasuredText is the middle with its 95 % interval.
func (c *RFC6349Criterion) MeasuredText() string {
	if c.Measured == nil {
		return "not measured"
	}
	text := c.show(*c.Measured)
	if c.CI95 != nil && c.CI95[0] != c.CI95[1] {
		text += " (" + span(c.show(c.CI95[0]), " to ", c.show(c.CI95[1])) + ")"
	}
	return text
}

// AskedText is what the sign-off asks for.
func (c *RFC6349Criterion) AskedText() string {
	if c.Required == 0 {
		return ""
	}
	text := "at least " + c.show(c.Required)
	if c.Name == "buffer-delay" {
		text = "at most " + c.show(c.Required)
	}
	if c.Due != c.Required {
		text += fmt.Sprintf(", %.4g %% of %s", 100*c.Required/c.Due, c.show(c.Due))
	}
	return text
}

func (c *RFC6349Criterion) show(v float64) string {
	if c.Unit == "ratio" {
		return fmt.Sprintf("%.4g %%", 100*v)
	}
	return units.Rate(v).String()
}
