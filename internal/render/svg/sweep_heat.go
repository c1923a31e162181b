package svg

import (
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// The heat map's measures, in its own pixels.
const (
	heatCell   = 56.0
	heatRow    = 42.0
	heatLeft   = 58.0
	heatTop    = 16.0
	heatBottom = 36.0
	heatMeans  = 46.0 // the averages' column and row
)

// short has the limiters' names for narrow cells.
var short = map[verdict.Name]string{verdict.SendBuffer: "send buf.", verdict.ReceiverWindow: "window",
	verdict.ReceiverApplication: "receiver", verdict.Bottleneck: "link",
	verdict.LocalQueue: "queue", verdict.NagleDelayedAck: "nagle", verdict.MTUBlackHole: "mtu"}

func shortName(l verdict.Name) string {
	if name, ok := short[l]; ok {
		return name
	}
	return string(l)
}

// SweepPlaneHeat draws the plane as a heat map, the smallest sizes at the lower left.
func SweepPlaneHeat(p *text.SweepPlane) Markup {
	columns := len(p.Across.Values)
	rows := len(p.Down.Values)
	plotWidth := heatCell * float64(columns)
	plotHeight := heatRow * float64(rows)
	width := heatLeft + plotWidth + 2
	height := heatTop + plotHeight + heatBottom
	if columns > 1 {
		width += heatMeans
	}
	width = math.Max(width, 150) // the axis's name
	if rows > 1 {
		height += 20
	}
	per, _ := p.Scale()
	most := 0.0
	for _, c := range p.All() {
		if c.GoodputBps > 0 {
			most = math.Max(most, c.GoodputBps)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg viewBox="0 0 %g %g" style="--least:%.0fpx;--most:%.0fpx" role="img" aria-label="heat map of goodput by %s and %s">`, width, height, 0.88*width, 1.25*width, p.Across.Name, p.Down.Name)
	fmt.Fprintf(&b, `<text class="axis" x="0" y="11">%s ↑</text>`, p.Down.Name)
	for i, row := range p.Cells {
		y := heatTop + plotHeight - heatRow*float64(i+1)
		fmt.Fprintf(&b, `<text class="end" x="%g" y="%g">%s</text>`, heatLeft-7, y+heatRow/2+4, axisText(p.Down.Values[i]))
		for j, c := range row {
			sweepCellPaint(c, &b, heatLeft+heatCell*float64(j), y, most)
		}
		if columns > 1 {
			fmt.Fprintf(&b, `<text class="mid" x="%g" y="%g">%s</text>`, heatLeft+plotWidth+heatMeans/2+2, y+heatRow/2+4,
				meanText(row, per))
		}
	}
	bottom := heatTop + plotHeight
	for j, v := range p.Across.Values {
		x := heatLeft + heatCell*(float64(j)+0.5)
		fmt.Fprintf(&b, `<text class="mid" x="%g" y="%g">%s</text>`, x, bottom+15, axisText(v))
		if rows > 1 {
			fmt.Fprintf(&b, `<text class="mid" x="%g" y="%g">%s</text>`, x, bottom+51, meanText(p.Column(j), per))
		}
	}
	fmt.Fprintf(&b, `<text class="axis mid" x="%g" y="%g">%s →</text>`, math.Max(heatLeft+plotWidth/2, 95), bottom+32,
		p.Across.Name)
	if rows > 1 {
		fmt.Fprintf(&b, `<text class="end" x="%g" y="%g">mean</text>`, heatLeft-7, bottom+51)
	}
	if columns > 1 {
		fmt.Fprintf(&b, `<text class="mid" x="%g" y="%g">mean</text>`, heatLeft+plotWidth+heatMeans/2+2, bottom+15)
	}
	if p.Receives {
		sweepPlaneDrawKnee(p, &b, plotWidth, plotHeight)
	}
	for i, row := range p.Cells {
		for j, c := range row {
			sweepCellLabel(c, &b, heatLeft+heatCell*float64(j), heatTop+plotHeight-heatRow*float64(i+1), most, per)
		}
	}
	b.WriteString(`</svg>`)
	return Markup(b.String()) // every piece is a number or from a closed list
}

// meanText is the average of those of the cells that have a goodput.
func meanText(cells []*record.SweepCell, per float64) string {
	return strings.Trim(text.Average(cells, per), " ")
}

// axisText formats a value of an axis for a narrow cell.
func axisText(size int) string {
	if size == 0 {
		return "auto"
	}
	return record.SweepSize(size)
}

const heatGap = 1.0 // around each cell

// sweepCellPaint adds one cell's ground: its colour by its goodput, hatched if it is predicted.
func sweepCellPaint(c *record.SweepCell, b *strings.Builder, x, y, most float64) {
	w := heatCell - 2*heatGap
	h := heatRow - 2*heatGap
	x = x + heatGap
	y = y + heatGap
	if c.GoodputBps <= 0 {
		fmt.Fprintf(b, `<g class="cell none"><rect x="%g" y="%g" width="%g" height="%g" rx="3"/></g>`, x, y, w, h)
		return
	}
	fmt.Fprintf(b, `<g class="cell toned" style="%s"><rect x="%g" y="%g" width="%g" height="%g" rx="3"/>`,
		heatTone(c.GoodputBps/most), x, y, w, h)
	if c.Predicted {
		for d := 8.0; d < w+h; d += 8 {
			fmt.Fprintf(b, `<path class="hatch" d="M%.1f %.1fL%.1f %.1f"/>`, x+math.Max(0, d-h), y+math.Min(d, h),
				x+math.Min(d, w), y+math.Max(0, d-w))
		}
	}
	b.WriteString(`</g>`)
}

// sweepCellLabel adds a cell's label above the lines that cross it: its goodput, its limiter as
// a word and as a bar, and its marks.
func sweepCellLabel(c *record.SweepCell, b *strings.Builder, x, y, most, per float64) {
	w := heatCell - 2*heatGap
	h := heatRow - 2*heatGap
	x = x + heatGap
	y = y + heatGap
	title := html.EscapeString(sweepCellTip(c))
	if c.GoodputBps <= 0 {
		text := "–"
		switch {
		case c.Refused != "":
			text = "n/a"
		case len(c.Problems) > 0:
			text = "failed"
		}
		fmt.Fprintf(b, `<g class="cell none"><title>%s</title><text class="mid" x="%g" y="%g">%s</text></g>`, title, x+w/2,
			y+h/2+4, text)
		return
	}
	class := "cell label toned " + html.EscapeString(string(c.Limiter))
	value := text.ThreeDigits(c.GoodputBps / per)
	if c.Predicted {
		class = class + " predicted"
		value = "~" + value
	}
	fmt.Fprintf(b,
		`<g class="%s" style="%s"><title>%s</title><text class="v mid" x="%g" y="%g">%s</text><text class="m mid" x="%g" y="%g">%s</text><rect class="bar" x="%g" y="%g" width="%g" height="3" rx="1.5"/>`,
		class, heatTone(c.GoodputBps/most), title, x+w/2, y+17, value, x+w/2, y+29.5,
		html.EscapeString(shortName(c.Limiter)), x+5, y+h-6, w-10)
	if c.Clipped() {
		fmt.Fprintf(b, `<path class="cut" d="M%g %gl-9 0l9 9z"/>`, x+w, y)
	}
	if c.Best || c.Enough {
		ring := "ring"
		if !c.Best {
			ring += " enough"
		}
		fmt.Fprintf(b, `<rect class="%s" x="%g" y="%g" width="%g" height="%g" rx="3"/>`, ring, x, y, w, h)
	}
	b.WriteString(`</g>`)
}

// sweepCellTip describes a cell in a sentence.
func sweepCellTip(c *record.SweepCell) string {
	tip := c.Buffers() + ": "
	if c.GoodputBps <= 0 {
		if marks := text.SweepCellMarks(c); marks != "" {
			return tip + marks
		}
		return tip + "not measured"
	}
	tip += text.SweepCellGoodputText(c) + ", limited by " + string(c.Limiter)
	if marks := text.SweepCellMarks(c); marks != "" {
		tip += " (" + marks + ")"
	}
	return tip
}

// sweepPlaneDrawKnee draws where each buffer reaches the BDP, and from where on the model expects a
// full path.
func sweepPlaneDrawKnee(p *text.SweepPlane, b *strings.Builder, width, height float64) {
	if !p.Bounded() {
		return
	}
	x := func(at float64) float64 { return heatLeft + heatCell*(at+0.5) }
	y := func(at float64) float64 { return heatTop + height - heatRow*(at+0.5) }
	top := heatTop
	right := heatLeft + width
	if at, ok := p.Across.Position(p.Path.BDPBytes); ok {
		fmt.Fprintf(b, `<path class="bdp" d="M%.1f %gV%g"/>`, x(at), top, heatTop+height)
	}
	if at, ok := p.Down.Position(p.Path.BDPBytes); ok {
		fmt.Fprintf(b, `<path class="bdp" d="M%g %.1fH%g"/>`, heatLeft, y(at), right)
	}
	across, ok := p.Across.Position(p.Knee(false))
	down, also := p.Down.Position(p.Knee(true))
	switch {
	case ok && also:
		fmt.Fprintf(b, `<path class="knee" d="M%.1f %gV%.1fH%g"/>`, x(across), top, y(down), right)
	case ok:
		fmt.Fprintf(b, `<path class="knee" d="M%.1f %gV%g"/>`, x(across), top, heatTop+height)
	case also:
		fmt.Fprintf(b, `<path class="knee" d="M%g %.1fH%g"/>`, heatLeft, y(down), right)
	}
}
