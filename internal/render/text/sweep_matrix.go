package text

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// CurvesText explains the signs that the curves use.
func (p *SweepPlane) CurvesText() string {
	text := " Bars are 95 % intervals"
	for _, c := range p.All() {
		if c.Predicted {
			text += ", open circles predictions"
			break
		}
	}
	if p.Bounded() {
		text += "; dashed is the model: one buffer a round trip, up to what the path carries"
	}
	return text + "."
}

// HeatText explains the signs that the heat map uses.
func (p *SweepPlane) HeatText(unit string) string {
	text := unit + " by " + p.Across.Name + " and " + p.Down.Name + "; below each number what limited it."
	used := func(meaning string, is func(*record.SweepCell) bool) {
		for _, c := range p.All() {
			if is(c) {
				text += " " + meaning
				return
			}
		}
	}
	used("Framed: the best.", func(c *record.SweepCell) bool { return c.Best })
	used("Dashed frame: the smallest buffers within 2 % of it.", func(c *record.SweepCell) bool {
		return c.Enough &&
			!c.Best
	})
	used("Hatched: predicted, not measured.", func(c *record.SweepCell) bool { return c.Predicted })
	used("Cut corner: the system granted less than "+
		"requested.", func(c *record.SweepCell) bool { return c.Clipped() })
	if !p.Receives || !p.Bounded() {
		return text
	}
	_, alongSend := p.Across.Position(p.Path.BDPBytes)
	_, alongReceive := p.Down.Position(p.Path.BDPBytes)
	if alongSend || alongReceive {
		text += fmt.Sprintf(" Dotted: the bandwidth-delay product, %s.", units.Size(p.Path.BDPBytes))
	}
	var knees []string
	for i, axis := range []SweepAxis{p.Across, p.Down} {
		if _, drawn := axis.Position(p.Knee(i == 1)); drawn {
			knees = append(knees, fmt.Sprintf("%ss of %s", axis.Name, units.Size(p.Knee(i == 1))))
		}
	}
	if len(knees) > 0 {
		text += " Red: the knee; from " + strings.Join(knees, " and ") + " on the model expects a full path."
	}
	return text
}

// Bounded reports whether the path's BDP is known and is not only a lower bound.
func (p *SweepPlane) Bounded() bool {
	return p.Path != nil && p.Path.BDPBytes > 0 && p.Path.CapacityBps > 0 && !p.Path.AtLeast
}

// Knee returns the requested buffer size whose effective size is the BDP, by the model if it
// has the systems' rules; 0 if the axis is no buffer or nothing is known.
func (p *SweepPlane) Knee(down bool) float64 {
	switch {
	case !p.Bounded() || down && !p.Receives:
		return 0
	case down && p.Path.KneeReceiveBytes > 0:
		return p.Path.KneeReceiveBytes
	case !down && p.Path.KneeSendBytes > 0:
		return p.Path.KneeSendBytes
	}
	return p.Path.BDPBytes
}

// Scale returns the unit of a matrix.
func (p *SweepPlane) Scale() (per float64, unit string) {
	most := 0.0
	for _, row := range p.Cells {
		for _, c := range row {
			if c.GoodputBps > 0 {
				most = math.Max(most, c.GoodputBps)
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

// letters abbreviates the limiters behind the numbers of a matrix.
var letters = map[verdict.Name]string{verdict.Application: "a", verdict.SendBuffer: "s", verdict.ReceiverWindow: "w",
	verdict.ReceiverApplication: "r",
	verdict.Congestion:          "c", verdict.Bottleneck: "b", verdict.LocalQueue: "q", verdict.AckPath: "k",
	verdict.SlowStart: "t", verdict.NagleDelayedAck: "n",
	verdict.MTUBlackHole: "m", verdict.Pacing: "p", verdict.CPU: "u", verdict.Sender: "e", verdict.Unknown: ".",
	verdict.Mixed: "x"}

// sweepCellText formats a cell of the matrix with its marks.
func sweepCellText(c *record.SweepCell, per float64) string {
	switch {
	case c.Refused != "":
		return "n/a  "
	case c.GoodputBps <= 0 && len(c.Problems) > 0:
		return "failed  "
	case c.GoodputBps <= 0:
		return "–  "
	}
	text := ThreeDigits(c.GoodputBps / per)
	mark := " "
	switch {
	case c.Predicted:
		text = "~" + text
	case c.Best:
		mark = "*"
	case c.Enough:
		mark = "+"
	case c.Clipped():
		mark = "^"
	case !c.Tight && len(c.Runs) > 1:
		mark = "?"
	}
	return text + mark + letters[c.Limiter]
}

// Average formats the mean of the cells with a goodput; "" without any. It has ~ if predictions are
// included, and ( ) if cells are missing.
func Average(cells []*record.SweepCell, per float64) string {
	sum := 0.0
	n := 0
	predicted := ""
	for _, c := range cells {
		if c.GoodputBps > 0 {
			sum += c.GoodputBps
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
		return "(" + predicted + ThreeDigits(sum/float64(n)/per) + ") "
	}
	return predicted + ThreeDigits(sum/float64(n)/per) + "  "
}

func (p *SweepPlane) Column(i int) (cells []*record.SweepCell) {
	for _, row := range p.Cells {
		cells = append(cells, row[i])
	}
	return cells
}

func (p *SweepPlane) All() (cells []*record.SweepCell) {
	for _, row := range p.Cells {
		cells = append(cells, row...)
	}
	return cells
}

// columnsAtOnce is the number of columns of a matrix that fit side by side.
const columnsAtOnce = 7

func (p *SweepPlane) writeText(w io.Writer) {
	per, unit := p.Scale()
	fmt.Fprintf(w, "%s, %s\n", p.Title, unit)
	fmt.Fprintf(w, "  %s across, %s down\n", p.Across.Name, p.Down.Name)
	columns := len(p.Across.Values)
	for from := 0; from < columns; from += columnsAtOnce {
		if from > 0 {
			fmt.Fprintln(w)
		}
		p.writeColumns(w, from, min(from+columnsAtOnce, columns), per)
	}
	if key := p.key(); key != "" {
		fmt.Fprintln(w, indent(key, "  ", render.Columns(w)))
	}
}

// writeColumns prints a part of the matrix; the averages of the rows follow the last
// column.
func (p *SweepPlane) writeColumns(w io.Writer, from, to int, per float64) {
	columns := len(p.Across.Values)
	means := columns > 1 && to == columns
	t := newTable()
	for i := range to - from + 2 {
		t.right[i] = true
	}
	head := []string{""}
	for _, v := range p.Across.Values[from:to] {
		head = append(head, record.SweepSize(v)+"  ")
	}
	if means {
		head = append(head, "average  ")
	}
	t.row(head...)
	for i, row := range p.Cells {
		line := []string{record.SweepSize(p.Down.Values[i])}
		for _, c := range row[from:to] {
			line = append(line, sweepCellText(c, per))
		}
		if means {
			line = append(line, Average(row, per))
		}
		t.row(line...)
	}
	if len(p.Cells) > 1 {
		line := []string{"average"}
		for i := from; i < to; i++ {
			line = append(line, Average(p.Column(i), per))
		}
		if means {
			line = append(line, Average(p.All(), per))
		}
		t.row(line...)
	}
	t.write(w, "  ")
}

// key explains the marks and letters that a matrix uses.
func (p *SweepPlane) key() string {
	var parts []string
	used := func(sign, meaning string, is func(*record.SweepCell) bool) {
		for _, c := range p.All() {
			if is(c) {
				parts = append(parts, sign+" "+meaning)
				return
			}
		}
	}
	used("*", "best", func(c *record.SweepCell) bool { return c.Best })
	used("+", "smallest buffers within 2 % of it", func(c *record.SweepCell) bool { return c.Enough && !c.Best })
	used("~", "predicted, not measured", func(c *record.SweepCell) bool { return c.Predicted })
	used("^", "the system granted less than requested", func(c *record.SweepCell) bool {
		return c.Clipped() && !c.Best &&
			!c.Enough
	})
	used("?", "not yet as precise as required", func(c *record.SweepCell) bool {
		return strings.Contains(sweepCellText(c, 1),
			"?")
	})
	used("–", "not measured", func(c *record.SweepCell) bool { return strings.HasPrefix(sweepCellText(c, 1), "–") })
	used("( )", "of the measured "+
		"cells", func(c *record.SweepCell) bool { return c.GoodputBps <= 0 })
	for _, name := range verdict.Names() {
		used(letters[name], string(name), func(c *record.SweepCell) bool { return c.GoodputBps > 0 && c.Limiter == name })
	}
	return strings.Join(parts, " · ")
}
