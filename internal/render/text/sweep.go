package text

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// SweepCounts returns the numbers of cells that were measured, measured with a tight interval, predicted and missing.
func SweepCounts(s *record.Sweep) (measured, tight, predicted, missing int) {
	for i := range s.Cells {
		switch c := &s.Cells[i]; {
		case c.Predicted:
			predicted++
		case c.GoodputBps <= 0:
			missing++
		default:
			measured++
			if c.Tight {
				tight++
			}
		}
	}
	return measured, tight, predicted, missing
}

// SweepSummary returns one line about the cells and their times.
func SweepSummary(s *record.Sweep) string {
	measured, tight, predicted, missing := SweepCounts(s)
	text := fmt.Sprintf("%d of %d cells measured", measured, len(s.Cells))
	if s.PrecisionRatio > 0 {
		text += fmt.Sprintf(", %d of them to ±%.3g %%", tight, 100*s.PrecisionRatio)
	}
	if predicted > 0 {
		text += fmt.Sprintf(", %d predicted", predicted)
	}
	if missing > 0 {
		text += fmt.Sprintf(", %d not measured", missing)
	}
	return fmt.Sprintf("%s; runs of %s, %s and %s in all", text, SecondsText(s.RunS),
		units.Time(units.Seconds(s.ElapsedS)), units.Size(s.BytesSent))
}

// SweepAxesText names the axes that have more than one value.
func SweepAxesText(a *record.SweepAxes) string {
	var names []string
	add := func(name string, sizes int, automatic bool) {
		if automatic {
			sizes++
		}
		if sizes > 1 {
			names = append(names, fmt.Sprintf("%d %s", sizes, name))
		}
	}
	add("send buffers", len(a.SendBuffers), a.SendAutomatic)
	add("receive buffers", len(a.ReceiveBuffers), a.ReceiveAutomatic)
	add("write sizes", len(a.Writes), a.WriteAutomatic)
	add("directions", len(a.Directions), false)
	add("congestion controls", len(a.Congestion), false)
	if len(names) == 0 {
		return "one cell"
	}
	return strings.Join(names, " × ")
}

// SweepCellMarks returns the remarks on a cell.
func SweepCellMarks(c *record.SweepCell) string {
	var parts []string
	for _, mark := range []struct {
		is   bool
		text string
	}{{c.Best, "best"}, {c.Enough && !c.Best, "enough"}, {c.Predicted, "predicted"}, {c.Clipped(), "clipped"},
		{c.Measured() && !c.Tight && len(c.Runs) > 1, "loose"},
		{c.Unsettled, "not settled"}, {c.Refused != "", "not available"}, {len(c.Problems) > 0, "failed: " +
			strings.Join(c.Problems, "; ")}} {
		if mark.is {
			parts = append(parts, mark.text)
		}
	}
	return strings.Join(parts, ", ")
}

func ReachedText(b *record.Buffer) string {
	if b == nil || b.EffectiveBytes == 0 {
		return ""
	}
	return units.Size(b.EffectiveBytes).String()
}

// Sweep prints a matrix for each plane of the grid, with averages.
func Sweep(w io.Writer, s *record.Sweep) {
	headlines := sweepHeadlines(s)
	for _, h := range headlines {
		writeHeadline(w, h)
	}
	spaceAfter(w, len(headlines))
	t := newTable()
	t.row("peer", s.Peer)
	t.row("near", HostText(s.Near))
	t.row("far", HostText(s.Far))
	for i := range s.Paths {
		t.row("path "+string(s.Paths[i].Direction), sweepPathText(&s.Paths[i]))
		sweepBestRows(s, &s.Paths[i], t)
	}
	t.row("grid", SweepSummary(s))
	if s.Interrupted {
		t.row("interrupted", "these are the cells measured up to then")
	}
	t.write(w, "")
	for _, p := range SweepPlanes(s) {
		fmt.Fprintln(w)
		p.writeText(w)
	}
	remarks := append(sweepEnough(s), sweepRemarks(s)...)
	spaceAfter(w, len(remarks))
	for _, line := range remarks {
		fmt.Fprintln(w, indent(line, "", render.Columns(w)))
	}
}

// sweepBestRows adds the interval of a direction's best cell and the remedy of its limiter.
func sweepBestRows(s *record.Sweep, p *record.SweepPath, t *table) {
	for i := range s.Cells {
		if c := &s.Cells[i]; c.Best && c.Measured() && c.Direction == p.Direction {
			if spread := SweepCellSpread(c); spread != "" {
				t.row("best "+string(p.Direction), fmt.Sprintf("%s with 95 %% confidence, %s", spread, count(len(c.Runs), "run")))
			}
			if said := do(p.Fix); said != "" {
				t.row("do", said)
			}
		}
	}
}

// sweepEnough names the smallest buffers that reach 98 % of the best cell, for each direction.
func sweepEnough(s *record.Sweep) (lines []string) {
	for i := range s.Cells {
		if c := &s.Cells[i]; c.Enough && c.Measured() && !c.Best {
			lines = append(lines, fmt.Sprintf("Enough %s, within 2 %% of the best: %s by %s.", c.Direction,
				SweepCellGoodputText(c), c.Buffers()))
		}
	}
	return lines
}

func sweepPathText(p *record.SweepPath) string {
	var parts []string
	if p.RTTMin > 0 {
		parts = append(parts, "round trip "+p.RTTMin.String())
	}
	if p.CapacityBps > 0 {
		least := ""
		if p.AtLeast {
			least = "at least "
		}
		parts = append(parts, "carries "+least+units.Rate(p.CapacityBps).String()+" of payload")
	}
	if p.BDPBytes > 0 {
		parts = append(parts, fmt.Sprintf("BDP %s", units.Size(p.BDPBytes)))
	}
	if p.Congestion != "" {
		parts = append(parts, p.Congestion)
	}
	return strings.Join(parts, ", ")
}

// ThreeDigits prints a value of the matrix: three significant digits, decimals aligned where
// values are of one size.
func ThreeDigits(v float64) string {
	switch {
	case v >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// SweepFindings returns the findings of the sweep, one sentence each.
func SweepFindings(s *record.Sweep) []string {
	var lines []string
	for i := range s.Cells {
		c := &s.Cells[i]
		if !c.Best || !c.Measured() {
			continue
		}
		line := fmt.Sprintf("Best %s: %s by %s", c.Direction, SweepCellGoodputText(c), c.Buffers())
		if c.Limiter != "" {
			line += fmt.Sprintf(" (limited by %s)", c.Limiter)
		}
		for j := range s.Cells {
			if e := &s.Cells[j]; e.Enough && e.Measured() && !e.Best && e.Direction == c.Direction {
				line += fmt.Sprintf("; enough, within 2 %% of it: %s with %s", e.Buffers(), SweepCellGoodputText(e))
			}
		}
		lines = append(lines, line+".")
		for j := range s.Paths {
			if said := do(s.Paths[j].Fix); s.Paths[j].Direction == c.Direction && said != "" {
				lines = append(lines, "Do: "+said+".")
			}
		}
	}
	return append(lines, sweepRemarks(s)...)
}

// sweepRemarks names the cells that say less than others.
func sweepRemarks(s *record.Sweep) (lines []string) {
	unsettled := 0
	for i := range s.Cells {
		c := &s.Cells[i]
		if c.Measured() && c.Unsettled {
			unsettled++
		}
	}
	if unsettled > 0 {
		lines = append(lines, fmt.Sprintf("%s never settled in %s: slow start counts there. A longer --time "+
			"shows the steady rate.", count(unsettled, "cell"), SecondsText(s.RunS)))
	}
	refused := map[string]bool{}
	for i := range s.Cells {
		if why := s.Cells[i].Refused; why != "" && !refused[why] {
			refused[why] = true
			lines = append(lines, "Not available: "+why+".")
		}
	}
	return lines
}

// SweepCellGoodputText formats "93.1 Mbit/s (92.8 to 93.4)".
func SweepCellGoodputText(c *record.SweepCell) string {
	text := units.Rate(c.GoodputBps).String()
	if spread := SweepCellSpread(c); spread != "" {
		text += " (" + spread + ")"
	}
	return text
}

// SweepCellSpread formats the interval; a common unit appears once.
func SweepCellSpread(c *record.SweepCell) string {
	if c.CI95Bps == nil || !(c.CI95Bps[1] < 1e15) {
		return ""
	}
	low := units.Rate(c.CI95Bps[0]).String()
	high := units.Rate(c.CI95Bps[1]).String()
	if number, unit, _ := strings.Cut(low, " "); strings.HasSuffix(high, " "+unit) {
		low = number
	}
	return low + " to " + high
}

// SweepCSV prints one line for each cell. An empty field is not known; sizes that were
// not requested are "automatic".
func SweepCSV(w io.Writer, s *record.Sweep) error {
	out := NewCSVWriter(w)
	out.Write([]string{"direction", "congestion", "send_buffer_bytes", "receive_buffer_bytes", "write_bytes",
		"goodput_bps", "ci95_low_bps", "ci95_high_bps", "runs",
		"predicted", "tight", "limiter", "subtype", "send_granted_bytes", "send_effective_bytes", "send_clipped",
		"receive_granted_bytes", "receive_effective_bytes",
		"receive_clipped", "retransmitted_segments", "best", "refused"})
	number := func(v float64) string { // "": not known
		if v == 0 {
			return ""
		}
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	size := func(bytes int) string { return cmp.Or(number(float64(bytes)), record.Automatic) }
	buffer := func(b *record.Buffer) []string {
		if b == nil {
			return []string{"", "", ""}
		}
		return []string{number(float64(b.GrantedBytes)), number(float64(b.EffectiveBytes)), strconv.FormatBool(b.Clipped)}
	}
	for i := range s.Cells {
		c := &s.Cells[i]
		row := []string{string(c.Direction), c.Congestion, size(c.Send), size(c.Receive), size(c.Write),
			number(c.GoodputBps), "", ""}
		if c.CI95Bps != nil {
			row[6] = strconv.FormatFloat(c.CI95Bps[0], 'f', 0, 64)
			row[7] = strconv.FormatFloat(c.CI95Bps[1], 'f', 0, 64)
		}
		row = append(row, strconv.Itoa(len(c.Runs)), strconv.FormatBool(c.Predicted), strconv.FormatBool(c.Tight),
			string(c.Limiter), c.Subtype)
		row = append(row, buffer(c.SendBuffer)...)
		row = append(row, buffer(c.ReceiveBuffer)...)
		again := ""
		if c.Retransmitted != nil {
			again = strconv.FormatInt(*c.Retransmitted, 10)
		}
		out.Write(append(row, again, strconv.FormatBool(c.Best), c.Refused))
	}
	out.Flush()
	return out.Error()
}
