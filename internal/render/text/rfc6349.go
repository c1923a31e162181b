package text

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func PercentText(v *float64) string {
	if v == nil {
		return "–"
	}
	return strings.TrimSpace(Trimmed(100**v)) + " %"
}

// RFC6349Title returns the name of the line.
func RFC6349Title(r *record.RFC6349) string {
	if r.Reference != "" {
		return r.Reference
	}
	return r.Peer
}

// RFC6349Stamp returns the verdict in one word.
func RFC6349Stamp(r *record.RFC6349) string {
	if rfc6349.Verdict(r.Verdict) == rfc6349.NotJudged {
		return "measured"
	}
	return string(r.Verdict)
}

// RFC6349 prints the test.
func RFC6349(w io.Writer, r *record.RFC6349) {
	writeParts(w, part{labelMeanings[string(r.Verdict)], RFC6349VerdictText(r) + rfc6349Failed(r)})
	for i := range r.Directions {
		writeHeadline(w, rfc6349Headline(&r.Directions[i]))
	}
	fmt.Fprintln(w)
	t := newTable()
	if r.Reference != "" {
		t.row("reference", r.Reference)
	}
	t.row("peer", r.Peer)
	t.row("near", HostText(r.Near))
	t.row("far", HostText(r.Far))
	t.row("when", RFC6349When(r))
	if r.Committed != nil {
		t.row("committed", RFC6349CommittedText(r))
	}
	t.row("path MTU", RFC6349MTUText(r))
	t.row("round trip", RFC6349RTTText(r))
	t.row("segments", RFC6349SegmentsText(r))
	t.write(w, "")
	for i := range r.Directions {
		fmt.Fprintln(w)
		writeRFC6349Direction(w, &r.Directions[i])
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
	for _, limit := range RFC6349Limits(r) {
		end.row("note", limit)
	}
	if r.Interrupted {
		end.row("interrupted", "these figures are of the part that was measured")
	}
	end.row("cost", fmt.Sprintf("%s, %s moved", SecondsText(r.ElapsedS), units.Size(r.BytesSent)))
	end.write(w, "")
}

// RFC6349When formats the start and the end of the test.
func RFC6349When(r *record.RFC6349) string {
	return r.StartedAt.UTC().Format("2006-01-02 15:04:05") + " to " + r.EndedAt.UTC().Format("15:04:05 MST")
}

// RFC6349CommittedText formats the committed rates, their layer and tolerance.
func RFC6349CommittedText(r *record.RFC6349) string {
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

// RFC6349MTUText and the next two functions describe the idle path.
func RFC6349MTUText(r *record.RFC6349) string {
	if r.Path.MTU == 0 {
		return "not known"
	}
	return fmt.Sprintf("%d bytes (%s)", r.Path.MTU, r.Path.MTUMethod)
}

func RFC6349RTTText(r *record.RFC6349) string {
	if r.Path.RTT == 0 {
		return "not known"
	}
	text := r.Path.RTT.String() + " minimum, idle (" + r.Path.RTTMethod.Text
	if r.Path.RTTCount > 0 {
		text += fmt.Sprintf(", %d samples", r.Path.RTTCount)
	}
	text += ")"
	if r.Path.Jitter != nil {
		text += ", jitter " + r.Path.Jitter.String()
	}
	return text
}

func RFC6349SegmentsText(r *record.RFC6349) string {
	if r.Path.MSS == 0 || r.Path.Headers == 0 {
		return "not known"
	}
	options := "without timestamps"
	if r.Path.Timestamps {
		options = "with timestamps (12 bytes)"
	}
	return fmt.Sprintf("%d bytes of payload and %d of IP and TCP headers, %s", r.Path.MSS, r.Path.Headers, options)
}

// RFC6349VerdictText formats the sign-off.
func RFC6349VerdictText(r *record.RFC6349) string {
	switch r.Verdict {
	case rfc6349.Pass:
		return "pass: the line carries the committed rate"
	case rfc6349.Fail:
		return "fail: the line does not carry the committed rate"
	case rfc6349.Inconclusive:
		return "inconclusive: not every requirement could be tested"
	}
	return "not judged: no committed rate was given (--cir)"
}

// RFC6349Limits returns the requirements of the standards that the test does not meet.
func RFC6349Limits(r *record.RFC6349) (all []string) {
	if r.RunS > 0 && r.RunS < rfc6349.AdvisedTime.Seconds() {
		all = append(all, fmt.Sprintf("each run lasted %s; RFC 6349 (3.3) asks for 30 s (--time 30s)", SecondsText(r.RunS)))
	}
	if f := r.FrameSearch; f != nil {
		text := fmt.Sprintf("frames count from address to check sequence; each trial lasted %s and allowed %.2g %% of loss",
			SecondsText(f.TrialS), 100*f.LossRatio)
		if f.TrialS < rfc6349.AdvisedTrial.Seconds() || f.LossRatio > 0 {
			text += ": RFC 2544 (24, 26.1) asks for 60 s and no loss"
		}
		all = append(all, text+"; the ends are hosts and no test sets: their own packet rate limits do not count against "+
			"the line")
	}
	return all
}

func writeRFC6349Direction(w io.Writer, d *record.RFC6349Direction) {
	fmt.Fprintln(w, Heading(d.Direction))
	t := newTable()
	t.row("bottleneck", RFC6349DirectionBottleneckText(d))
	if d.BDPBytes > 0 {
		t.row("BDP", units.Size(d.BDPBytes).Exact())
	}
	if d.MaxTCPBps > 0 {
		t.row("largest TCP rate", units.Rate(d.MaxTCPBps).String()+", "+RFC6349DirectionReferenceText(d))
	}
	t.write(w, "  ")
	if len(d.Tests) > 0 {
		fmt.Fprintln(w)
		tests := newTable(1, 2, 3, 4, 5, 6, 7)
		tests.optional = []int{5, 2, 6} // settled, of BDP, efficiency
		first, second := twoLines(TestColumns())
		tests.row(first...)
		tests.row(second...)
		for i := range d.Tests {
			tests.row(RFC6349TestCells(&d.Tests[i])...)
		}
		tests.write(w, "  ")
	}
	if said := do(d.Fix); said != "" {
		writeDo(w, said)
	}
	if len(d.Frames) > 0 {
		fmt.Fprintln(w)
		frames := newTable(0, 1, 2, 3, 4)
		frames.row("frame", "frames/s", "due", "rate", "lost", "verdict")
		for i := range d.Frames {
			frames.row(RFC6349FrameCells(&d.Frames[i])...)
		}
		frames.write(w, "  ")
	}
	if len(d.Criteria) > 0 {
		fmt.Fprintln(w)
		criteria := newTable()
		for i := range d.Criteria {
			c := &d.Criteria[i]
			criteria.row(RFC6349CriterionVerdictText(c), RFC6349CriterionTitle(c)+": "+RFC6349CriterionText(c))
		}
		criteria.write(w, "  ")
	}
}

// RFC6349DirectionBottleneckText formats the bottleneck's rate and its method.
func RFC6349DirectionBottleneckText(d *record.RFC6349Direction) string {
	b := d.Bottleneck
	if b.IsZero() {
		return "not measured"
	}
	text := units.Rate(b.Bps).String() + " at the IP layer"
	if b.AtLeast {
		text = "at least " + text
	}
	if b.BurstBytes > 0 {
		text += ", after a burst of " + units.Size(b.BurstBytes).String()
	}
	return text + " (" + b.Method.Text + ")"
}

// RFC6349DirectionReferenceText formats the rate from which the largest TCP rate is computed.
func RFC6349DirectionReferenceText(d *record.RFC6349Direction) string {
	if d.CommittedBps > 0 {
		return "of the committed " + units.Rate(d.CommittedBps).String()
	}
	return "of the bottleneck"
}

// RFC6349TestTitle names a test by its connections.
func RFC6349TestTitle(t *record.RFC6349Test) string {
	switch t.Kind {
	case rfc6349.Automatic:
		return "automatic"
	case rfc6349.Full:
		return "one connection"
	case rfc6349.Several:
		return fmt.Sprintf("%d connections", t.Connections)
	case rfc6349.Both:
		return "both directions"
	}
	return "window"
}

// TestColumns returns the headings of the rows of tests.
func TestColumns() []string {
	return []string{"test", "window", "of BDP", "goodput of possible", "transfer time ratio", "without slow start",
		"efficiency", "buffer delay", "limited by"}
}

// RFC6349TestCells returns the row of a test.
func RFC6349TestCells(t *record.RFC6349Test) []string {
	window := "auto"
	share := "–"
	if t.Window > 0 {
		window = units.Size(t.Window).String()
	}
	if t.Share > 0 {
		share = fmt.Sprintf("%.0f %%", 100*t.Share)
	}
	cells := []string{RFC6349TestTitle(t), window, share}
	run := t.Typical()
	if run == nil {
		return append(cells, "–", "–", "–", "–", "–", t.Skipped.Text)
	}
	efficiency := "–"
	delay := "–"
	if run.RFC6349Sender != nil {
		efficiency = fmt.Sprintf("%.2f %%", 100*run.Efficiency)
	}
	if run.BufferDelay != nil {
		delay = fmt.Sprintf("%.0f %%", 100**run.BufferDelay)
	}
	limited := string(t.Limiter)
	switch {
	case t.Kind == rfc6349.Window && t.Limiter == verdict.ReceiverWindow:
		limited = "this window"
	case t.Subtype == verdict.Policer:
		limited = t.Subtype
	}
	return append(cells, span(RateText(t.GoodputBps), " of ", RateText(positive(t.AchievableBps))),
		ratioText(run.TimeRatio), ratioText(run.SteadyRatio), efficiency, delay, limited)
}

// span joins two quantities; a common unit appears once.
func span(low, between, high string) string {
	if _, unit, ok := strings.Cut(high, " "); ok {
		low = strings.TrimSuffix(low, " "+unit)
	}
	return low + between + high
}

// positive returns nil for 0, which is not known.
func positive(v float64) *float64 {
	if v == 0 {
		return nil
	}
	return &v
}

func ratioText(v float64) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3f", v)
}

// RFC6349FrameCells returns the row of a frame size.
func RFC6349FrameCells(f *record.RFC6349Frame) []string {
	verdict := string(f.Verdict)
	if f.Reason.Text != "" {
		verdict += ": " + f.Reason.Text
	}
	cells := []string{fmt.Sprintf("%d B", f.FrameBytes), "–", "–", "–", "–", verdict}
	if f.Due > 0 {
		cells[2] = Thousands(int64(math.Round(f.Due)))
	}
	if f.FramesPerSec > 0 {
		cells[1] = Thousands(int64(math.Round(f.FramesPerSec)))
		cells[3] = units.Rate(f.Bps).String()
		cells[4] = fmt.Sprintf("%.2g %%", 100*record.OrZero(f.LossRatio))
	}
	return cells
}
