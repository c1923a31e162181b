package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/sweep"
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

// short are the limiters' names where there is little room.
var short = map[limiter.Name]string{limiter.SendBuffer: "send buf.", limiter.ReceiverWindow: "window", limiter.ReceiverApplication: "receiver", limiter.Bottleneck: "link",
	limiter.LocalQueue: "queue", limiter.NagleDelayedAck: "nagle", limiter.MTUBlackHole: "mtu"}

func shortName(l limiter.Name) string {
	if name, ok := short[l]; ok {
		return name
	}
	return string(l)
}

// heat draws the plane as a heat map, the smallest sizes at the lower left.
func (p *sweepPlane) heat() template.HTML {
	columns, rows := len(p.across.values), len(p.down.values)
	plotWidth, plotHeight := heatCell*float64(columns), heatRow*float64(rows)
	width, height := heatLeft+plotWidth+2, heatTop+plotHeight+heatBottom
	if columns > 1 {
		width += heatMeans
	}
	width = math.Max(width, 150) // the axis's name
	if rows > 1 {
		height += 20
	}
	per, _ := p.scale()
	most := 0.0
	for _, c := range p.all() {
		if c.GoodputBps != nil {
			most = math.Max(most, *c.GoodputBps)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" style="--least:%.0fpx;--most:%.0fpx" role="img" aria-label="heat map of goodput by %s and %s">`, width, height, 0.88*width, 1.25*width, p.across.name, p.down.name)
	fmt.Fprintf(&b, `<text class="axis" x="0" y="11">%s ↑</text>`, p.down.name)
	for i, row := range p.cells {
		y := heatTop + plotHeight - heatRow*float64(i+1)
		fmt.Fprintf(&b, `<text class="end" x="%g" y="%g">%s</text>`, heatLeft-7, y+heatRow/2+4, axisText(p.down.values[i]))
		for j, c := range row {
			c.paint(&b, heatLeft+heatCell*float64(j), y, most)
		}
		if columns > 1 {
			fmt.Fprintf(&b, `<text class="mid" x="%g" y="%g">%s</text>`, heatLeft+plotWidth+heatMeans/2+2, y+heatRow/2+4, meanText(row, per))
		}
	}
	bottom := heatTop + plotHeight
	for j, v := range p.across.values {
		x := heatLeft + heatCell*(float64(j)+0.5)
		fmt.Fprintf(&b, `<text class="mid" x="%g" y="%g">%s</text>`, x, bottom+15, axisText(v))
		if rows > 1 {
			fmt.Fprintf(&b, `<text class="mid" x="%g" y="%g">%s</text>`, x, bottom+51, meanText(p.column(j), per))
		}
	}
	fmt.Fprintf(&b, `<text class="axis mid" x="%g" y="%g">%s →</text>`, math.Max(heatLeft+plotWidth/2, 95), bottom+32, p.across.name)
	if rows > 1 {
		fmt.Fprintf(&b, `<text class="end" x="%g" y="%g">mean</text>`, heatLeft-7, bottom+51)
	}
	if columns > 1 {
		fmt.Fprintf(&b, `<text class="mid" x="%g" y="%g">mean</text>`, heatLeft+plotWidth+heatMeans/2+2, bottom+15)
	}
	if p.receives {
		p.drawKnee(&b, plotWidth, plotHeight)
	}
	for i, row := range p.cells {
		for j, c := range row {
			c.label(&b, heatLeft+heatCell*float64(j), heatTop+plotHeight-heatRow*float64(i+1), most, per)
		}
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) // every piece is a number or from a closed list
}

// meanText is the average of those of the cells that have a goodput.
func meanText(cells []*SweepCell, per float64) string {
	return strings.Trim(average(cells, per), " ")
}

// axisText is a value of an axis where there is little room.
func axisText(size int) string {
	if size == 0 {
		return "auto"
	}
	return sweep.SizeText(size)
}

const heatGap = 1.0 // around each cell

// paint adds one cell's ground: its colour by its goodput, hatched if it is predicted.
func (c *SweepCell) paint(b *strings.Builder, x, y, most float64) {
	w, h := heatCell-2*heatGap, heatRow-2*heatGap
	x, y = x+heatGap, y+heatGap
	if c.GoodputBps == nil {
		fmt.Fprintf(b, `<g class="cell none"><rect x="%g" y="%g" width="%g" height="%g" rx="3"/></g>`, x, y, w, h)
		return
	}
	fmt.Fprintf(b, `<g class="cell toned" style="%s"><rect x="%g" y="%g" width="%g" height="%g" rx="3"/>`, heatTone(*c.GoodputBps/most), x, y, w, h)
	if c.Predicted {
		for d := 8.0; d < w+h; d += 8 {
			fmt.Fprintf(b, `<path class="hatch" d="M%.1f %.1fL%.1f %.1f"/>`, x+math.Max(0, d-h), y+math.Min(d, h), x+math.Min(d, w), y+math.Max(0, d-w))
		}
	}
	b.WriteString(`</g>`)
}

// label adds what a cell says, above the lines that cross it: its goodput, its limiter as
// a word and as a bar, and its marks.
func (c *SweepCell) label(b *strings.Builder, x, y, most, per float64) {
	w, h := heatCell-2*heatGap, heatRow-2*heatGap
	x, y = x+heatGap, y+heatGap
	title := template.HTMLEscapeString(c.tell())
	if c.GoodputBps == nil {
		text := "–"
		switch {
		case c.Refused != "":
			text = "n/a"
		case len(c.Problems) > 0:
			text = "failed"
		}
		fmt.Fprintf(b, `<g class="cell none"><title>%s</title><text class="mid" x="%g" y="%g">%s</text></g>`, title, x+w/2, y+h/2+4, text)
		return
	}
	class, value := "cell label toned "+string(c.Limiter), threeDigits(*c.GoodputBps/per)
	if c.Predicted {
		class, value = class+" predicted", "~"+value
	}
	fmt.Fprintf(b, `<g class="%s" style="%s"><title>%s</title><text class="v mid" x="%g" y="%g">%s</text><text class="m mid" x="%g" y="%g">%s</text><rect class="bar" x="%g" y="%g" width="%g" height="3" rx="1.5"/>`,
		class, heatTone(*c.GoodputBps/most), title, x+w/2, y+17, value, x+w/2, y+29.5, shortName(c.Limiter), x+5, y+h-6, w-10)
	if c.clipped() {
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

// tell is the cell in a sentence.
func (c *SweepCell) tell() string {
	text := c.name() + ": "
	if c.GoodputBps == nil {
		if marks := c.Marks(); marks != "" {
			return text + marks
		}
		return text + "not measured"
	}
	text += c.goodputText() + ", limited by " + string(c.Limiter)
	if marks := c.Marks(); marks != "" {
		text += " (" + marks + ")"
	}
	return text
}

// position is where a size lies along an axis, in steps from its first value, logarithmic
// between values; ok is false outside the axis.
func (a sweepAxis) position(size float64) (at float64, ok bool) {
	fixed := a.values
	if n := len(fixed); n > 0 && fixed[n-1] == 0 {
		fixed = fixed[:n-1]
	}
	if len(fixed) < 2 || size <= 0 {
		return 0, false
	}
	i := slices.IndexFunc(fixed, func(v int) bool { return float64(v) > size })
	if i < 0 { // beyond the last by at most half a step
		i = len(fixed) - 1
	}
	i = max(i, 1)
	low, high := math.Log(float64(fixed[i-1])), math.Log(float64(fixed[i]))
	at = float64(i-1) + (math.Log(size)-low)/(high-low)
	return at, at > -0.5 && at < float64(len(fixed))-0.5
}

// drawKnee draws where each buffer reaches the BDP, and from where on the model expects a
// full path.
func (p *sweepPlane) drawKnee(b *strings.Builder, width, height float64) {
	if !p.bounded() {
		return
	}
	x := func(at float64) float64 { return heatLeft + heatCell*(at+0.5) }
	y := func(at float64) float64 { return heatTop + height - heatRow*(at+0.5) }
	top, right := heatTop, heatLeft+width
	if at, ok := p.across.position(*p.path.BDPBytes); ok {
		fmt.Fprintf(b, `<path class="bdp" d="M%.1f %gV%g"/>`, x(at), top, heatTop+height)
	}
	if at, ok := p.down.position(*p.path.BDPBytes); ok {
		fmt.Fprintf(b, `<path class="bdp" d="M%g %.1fH%g"/>`, heatLeft, y(at), right)
	}
	across, ok := p.across.position(p.knee(false))
	down, also := p.down.position(p.knee(true))
	switch {
	case ok && also:
		fmt.Fprintf(b, `<path class="knee" d="M%.1f %gV%.1fH%g"/>`, x(across), top, y(down), right)
	case ok:
		fmt.Fprintf(b, `<path class="knee" d="M%.1f %gV%g"/>`, x(across), top, heatTop+height)
	case also:
		fmt.Fprintf(b, `<path class="knee" d="M%g %.1fH%g"/>`, heatLeft, y(down), right)
	}
}
