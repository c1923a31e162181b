package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/sweep"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// WriteText prints a matrix for each plane of the grid, with averages.
func (s *Sweep) WriteText(w io.Writer) {
	t := newTable()
	t.row("peer", s.Peer)
	t.row("near", s.Near.text())
	t.row("far", s.Far.text())
	for _, p := range s.Paths {
		t.row("path "+string(p.Direction), p.text())
	}
	t.row("grid", s.summary())
	if s.Interrupted {
		t.row("interrupted", "these are the cells that were measured until then")
	}
	t.write(w, "")
	for i := range s.planes {
		fmt.Fprintln(w)
		s.planes[i].writeText(w)
	}
	fmt.Fprintln(w)
	for _, line := range s.findings() {
		fmt.Fprintln(w, indent(line, "", pageWidth))
	}
}

func (p *SweepPath) text() string {
	var parts []string
	if p.RTTMinS != nil {
		parts = append(parts, "round trip "+secondsText(*p.RTTMinS))
	}
	if p.CapacityBps != nil {
		least := ""
		if p.AtLeast {
			least = "at least "
		}
		parts = append(parts, "carries "+least+units.Rate(*p.CapacityBps).String())
	}
	if p.BDPBytes != nil {
		parts = append(parts, fmt.Sprintf("BDP %s", units.Size(*p.BDPBytes)))
	}
	if p.Congestion != "" {
		parts = append(parts, p.Congestion)
	}
	return strings.Join(parts, ", ")
}

// scale is the unit that a matrix is printed in.
func (p *sweepPlane) scale() (per float64, unit string) {
	most := 0.0
	for _, row := range p.cells {
		for _, c := range row {
			if c.GoodputBps != nil {
				most = math.Max(most, *c.GoodputBps)
			}
		}
	}
	for _, u := range []struct {
		per  float64
		name string
	}{{1e9, "Gbit/s"}, {1e6, "Mbit/s"}, {1e3, "kbit/s"}} {
		if most >= u.per {
			return u.per, u.name
		}
	}
	return 1, "bit/s"
}

// threeDigits prints a value of the matrix: three significant digits, decimals aligned where
// values are of one size.
func threeDigits(v float64) string {
	switch {
	case v >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// letters stand for the limiters behind the numbers of a matrix.
var letters = map[limiter.Name]string{limiter.Application: "a", limiter.SendBuffer: "s", limiter.ReceiverWindow: "w", limiter.ReceiverApplication: "r",
	limiter.Congestion: "c", limiter.Bottleneck: "b", limiter.LocalQueue: "q", limiter.AckPath: "k", limiter.SlowStart: "t", limiter.NagleDelayedAck: "n",
	limiter.MTUBlackHole: "m", limiter.Pacing: "p", limiter.CPU: "u", limiter.Sender: "e", limiter.Unknown: ".", limiter.Mixed: "x"}

// text is the cell as the matrix prints it, with its marks.
func (c *SweepCell) text(per float64) string {
	switch {
	case c.Refused != "":
		return "n/a  "
	case c.GoodputBps == nil && len(c.Problems) > 0:
		return "failed  "
	case c.GoodputBps == nil:
		return "–  "
	}
	text, mark := threeDigits(*c.GoodputBps/per), " "
	switch {
	case c.Predicted:
		text = "~" + text
	case c.Best:
		mark = "*"
	case c.Enough:
		mark = "+"
	case c.clipped():
		mark = "^"
	case !c.Tight && len(c.Runs) > 1:
		mark = "?"
	}
	return text + mark + letters[c.Limiter]
}

// average of the cells that have a goodput, "" of none; ~ where predictions are in it, ( )
// where cells are missing.
func average(cells []*SweepCell, per float64) string {
	sum, n, predicted := 0.0, 0, ""
	for _, c := range cells {
		if c.GoodputBps != nil {
			sum += *c.GoodputBps
			n++
		}
		if c.Predicted {
			predicted = "~"
		}
	}
	switch {
	case n == 0:
		return ""
	case n < len(cells):
		return "(" + predicted + threeDigits(sum/float64(n)/per) + ") "
	}
	return predicted + threeDigits(sum/float64(n)/per) + "  "
}

func (p *sweepPlane) column(i int) (cells []*SweepCell) {
	for _, row := range p.cells {
		cells = append(cells, row[i])
	}
	return cells
}

func (p *sweepPlane) all() (cells []*SweepCell) {
	for _, row := range p.cells {
		cells = append(cells, row...)
	}
	return cells
}

// columnsAtOnce is how many columns of a matrix fit beside each other.
const columnsAtOnce = 7

func (p *sweepPlane) writeText(w io.Writer) {
	per, unit := p.scale()
	fmt.Fprintf(w, "%s, %s\n", p.title, unit)
	fmt.Fprintf(w, "  %s across, %s down\n", p.across.name, p.down.name)
	columns := len(p.across.values)
	for from := 0; from < columns; from += columnsAtOnce {
		if from > 0 {
			fmt.Fprintln(w)
		}
		p.writeColumns(w, from, min(from+columnsAtOnce, columns), per)
	}
	if key := p.key(); key != "" {
		fmt.Fprintln(w, indent(key, "  ", pageWidth))
	}
}

// writeColumns prints a part of the matrix; the averages of the rows stand behind the
// last.
func (p *sweepPlane) writeColumns(w io.Writer, from, to int, per float64) {
	columns := len(p.across.values)
	means := columns > 1 && to == columns
	t := newTable()
	for i := range to - from + 2 {
		t.right[i] = true
	}
	head := []string{""}
	for _, v := range p.across.values[from:to] {
		head = append(head, sweep.SizeText(v)+"  ")
	}
	if means {
		head = append(head, "average  ")
	}
	t.row(head...)
	for i, row := range p.cells {
		line := []string{sweep.SizeText(p.down.values[i])}
		for _, c := range row[from:to] {
			line = append(line, c.text(per))
		}
		if means {
			line = append(line, average(row, per))
		}
		t.row(line...)
	}
	if len(p.cells) > 1 {
		line := []string{"average"}
		for i := from; i < to; i++ {
			line = append(line, average(p.column(i), per))
		}
		if means {
			line = append(line, average(p.all(), per))
		}
		t.row(line...)
	}
	t.write(w, "  ")
}

// key explains the marks and letters that a matrix uses.
func (p *sweepPlane) key() string {
	var parts []string
	used := func(sign, meaning string, is func(*SweepCell) bool) {
		for _, c := range p.all() {
			if is(c) {
				parts = append(parts, sign+" "+meaning)
				return
			}
		}
	}
	used("*", "best", func(c *SweepCell) bool { return c.Best })
	used("+", "smallest buffers within 2 % of it", func(c *SweepCell) bool { return c.Enough && !c.Best })
	used("~", "predicted, not measured", func(c *SweepCell) bool { return c.Predicted })
	used("^", "the system gave less than was asked", func(c *SweepCell) bool { return c.clipped() && !c.Best && !c.Enough })
	used("?", "not yet as precise as asked", func(c *SweepCell) bool { return strings.Contains(c.text(1), "?") })
	used("–", "not measured", func(c *SweepCell) bool { return strings.HasPrefix(c.text(1), "–") })
	used("( )", "of those that were measured", func(c *SweepCell) bool { return c.GoodputBps == nil })
	for _, name := range limiter.Names() {
		used(letters[name], string(name), func(c *SweepCell) bool { return c.GoodputBps != nil && c.Limiter == name })
	}
	return strings.Join(parts, " · ")
}

// findings are what the sweep says, a sentence each.
func (s *Sweep) findings() []string {
	var lines []string
	for i := range s.Cells {
		c := &s.Cells[i]
		if !c.Best {
			continue
		}
		line := fmt.Sprintf("Best %s: %s by %s", c.Direction, c.goodputText(), c.name())
		if c.Limiter != "" {
			line += fmt.Sprintf(" (limited by %s)", c.Limiter)
		}
		for j := range s.Cells {
			if e := &s.Cells[j]; e.Enough && !e.Best && e.Direction == c.Direction {
				line += fmt.Sprintf("; enough, within 2 %% of it: %s with %s", e.name(), e.goodputText())
			}
		}
		lines = append(lines, line+".")
	}
	unsettled := 0
	for i := range s.Cells {
		c := &s.Cells[i]
		if c.measured() && c.Unsettled {
			unsettled++
		}
	}
	if unsettled > 0 {
		lines = append(lines, fmt.Sprintf("%d cells never settled in %s: their slow start counts. A longer --time shows what they carry in the long run.", unsettled, secondsText(s.RunS)))
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

// goodputText is "93.1 Mbit/s (92.8 to 93.4)".
func (c *SweepCell) goodputText() string {
	text := units.Rate(*c.GoodputBps).String()
	if spread := c.Spread(); spread != "" {
		text += " (" + spread + ")"
	}
	return text
}

// Spread is the interval in words, its first unit left out where both are the same.
func (c *SweepCell) Spread() string {
	if c.CI95Bps == nil || !(c.CI95Bps[1] < 1e15) {
		return ""
	}
	low, high := units.Rate(c.CI95Bps[0]).String(), units.Rate(c.CI95Bps[1]).String()
	if number, unit, _ := strings.Cut(low, " "); strings.HasSuffix(high, " "+unit) {
		low = number
	}
	return low + " to " + high
}

// WriteCSV prints one line for each cell; an empty field is not known, sizes that were
// not asked for are "automatic".
func (s *Sweep) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{"direction", "congestion", "send_buffer_bytes", "receive_buffer_bytes", "write_bytes", "goodput_bps", "ci95_low_bps", "ci95_high_bps", "runs",
		"predicted", "tight", "limiter", "subtype", "send_granted_bytes", "send_effective_bytes", "send_clipped", "receive_granted_bytes", "receive_effective_bytes",
		"receive_clipped", "retransmitted_segments", "best", "refused"})
	bps := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'f', 0, 64)
	}
	size := func(v *int) string {
		if v == nil {
			return sweep.Automatic
		}
		return strconv.Itoa(*v)
	}
	buffer := func(b *Buffer) []string {
		if b == nil {
			return []string{"", "", ""}
		}
		known := func(v *int) string {
			if v == nil {
				return ""
			}
			return strconv.Itoa(*v)
		}
		return []string{known(b.GrantedBytes), known(b.EffectiveBytes), strconv.FormatBool(b.Clipped)}
	}
	for i := range s.Cells {
		c := &s.Cells[i]
		row := []string{string(c.Direction), c.Congestion, size(c.SendBufferBytes), size(c.ReceiveBufferBytes), size(c.WriteBytes), bps(c.GoodputBps), "", ""}
		if c.CI95Bps != nil {
			row[6], row[7] = bps(&c.CI95Bps[0]), bps(&c.CI95Bps[1])
		}
		row = append(row, strconv.Itoa(len(c.Runs)), strconv.FormatBool(c.Predicted), strconv.FormatBool(c.Tight), string(c.Limiter), c.Subtype)
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
