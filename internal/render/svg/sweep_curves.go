package svg

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// The curves' measures, in their own pixels.
const (
	curvesWidth  = 420.0
	curvesHeight = 270.0
	curvesLeft   = 40.0
	curvesRight  = 66.0 // for the lines' names
	curvesTop    = 20.0
	curvesBottom = 38.0
)

// SweepPlaneCurves draws goodput over one axis, a line for each value of the other; knee is the
// requested size whose effective size is the BDP, 0 if unknown.
func SweepPlaneCurves(p *text.SweepPlane, along, each text.SweepAxis, lines [][]*record.SweepCell,
	knee float64) Markup {
	per, unit := p.Scale()
	high := sweepPlaneCeiling(p)
	width := curvesWidth - curvesLeft - curvesRight
	height := curvesHeight - curvesTop - curvesBottom
	steps := max(len(along.Values)-1, 1)
	x := func(at float64) float64 { return curvesLeft + 8 + (width-16)*at/float64(steps) }
	y := func(bps float64) float64 { return curvesTop + height - height*math.Min(bps, high)/high }
	bottom := curvesTop + height
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg viewBox="0 0 %g %g" style="--least:330px;--most:620px" role="img" aria-label="goodput over %s for each %s">`,
		curvesWidth, curvesHeight, along.Name, each.Name)
	fmt.Fprintf(&b,
		`<text class="axis" x="0" y="11">%s</text><text class="axis mid" x="%g" y="%g">%s →</text><text class="axis end" x="%g" y="11">%s</text>`,
		unit, curvesLeft+width/2, curvesHeight-4, along.Name, curvesWidth-2, each.Name)
	for _, v := range ticks(0, high/per, 5) {
		fmt.Fprintf(&b, `<path class="grid" d="M%g %.1fH%g"/><text class="end" x="%g" y="%.1f">%s</text>`, curvesLeft,
			y(v*per), curvesLeft+width, curvesLeft-5, y(v*per)+4, text.Trimmed(v))
	}
	every := (len(along.Values) + 6) / 7 // labels that fit side by side
	for i, v := range along.Values {
		if i%every == 0 || v == 0 {
			fmt.Fprintf(&b, `<path class="grid" d="M%.1f %gv4"/><text class="mid" x="%.1f" y="%g">%s</text>`, x(float64(i)),
				bottom, x(float64(i)), bottom+16, strings.TrimSuffix(axisText(v), "iB"))
		}
	}
	sweepPlaneDrawModel(p, &b, along, knee, x, y, bottom)
	labels := make([]float64, len(lines))
	for i, line := range lines {
		labels[i] = bottom
		fmt.Fprintf(&b, `<g class="curve toned" style="%s">`, lineTone(i, len(lines)))
		path := ""
		pen := "M"
		for j, c := range line {
			if c.GoodputBps <= 0 {
				pen = "M"
				continue
			}
			at := y(c.GoodputBps)
			path += fmt.Sprintf("%s%.1f %.1f", pen, x(float64(j)), at)
			pen = "L"
			labels[i] = at
		}
		fmt.Fprintf(&b, `<path d="%s"/>`, path)
		for j, c := range line {
			sweepCellDrawPoint(c, &b, x(float64(j)), y)
		}
		b.WriteString(`</g>`)
	}
	for i, at := range spread(labels, 12.5, curvesTop+4, bottom) {
		fmt.Fprintf(&b, `<g class="curve toned" style="%s"><text x="%g" y="%.1f">%s</text></g>`, lineTone(i, len(lines)),
			curvesLeft+width+6, at+4, axisText(each.Values[i]))
	}
	b.WriteString(`</svg>`)
	return Markup(b.String()) // every piece is a number or from a closed list
}

// sweepPlaneCeiling is the top of the scale.
func sweepPlaneCeiling(p *text.SweepPlane) float64 {
	high := 1.0
	for _, c := range p.All() {
		if c.GoodputBps > 0 {
			high = math.Max(high, c.GoodputBps)
			if c.CI95Bps != nil && c.CI95Bps[1] < 1.3*c.GoodputBps {
				high = math.Max(high, c.CI95Bps[1])
			}
		}
	}
	return high * 1.06
}

// sweepPlaneDrawModel draws the BDP, the knee, and the rate of one buffer a round trip up to the
// path's rate.
func sweepPlaneDrawModel(p *text.SweepPlane, b *strings.Builder, along text.SweepAxis, knee float64, x,
	y func(float64) float64, bottom float64) {
	if knee <= 0 {
		return
	}
	capacity := p.Path.CapacityBps
	var path strings.Builder
	fixed := len(along.Values)
	if along.Values[fixed-1] == 0 {
		fixed--
	}
	pen := "M"
	for i := 0.0; i <= float64(fixed-1)+1e-9; i += 0.125 {
		size := sweepAxisSize(along, i)
		fmt.Fprintf(&path, "%s%.1f %.1f", pen, x(i), y(math.Min(capacity, capacity*size/knee)))
		pen = "L"
	}
	fmt.Fprintf(b, `<path class="model" d="%s"/>`, path.String())
	if at, ok := along.Position(p.Path.BDPBytes); ok {
		fmt.Fprintf(b, `<path class="bdp" d="M%.1f %gV%g"/>`, x(at), curvesTop, bottom)
	}
	if at, ok := along.Position(knee); ok {
		middle := math.Min(math.Max(x(at), curvesLeft+80), curvesWidth-curvesRight-60)
		fmt.Fprintf(b, `<path class="knee" d="M%.1f %gV%g"/><text class="kneed mid" x="%.1f" y="11">knee %s</text>`, x(at),
			curvesTop-4, bottom, middle, units.Size(knee))
	}
}

// sweepAxisSize is the value at a place along the axis, logarithmic between its values.
func sweepAxisSize(a text.SweepAxis, at float64) float64 {
	i := min(int(at), len(a.Values)-2)
	if i < 0 || a.Values[i+1] == 0 {
		return float64(a.Values[max(min(int(at), len(a.Values)-1), 0)])
	}
	low := math.Log(float64(a.Values[i]))
	high := math.Log(float64(a.Values[i+1]))
	return math.Exp(low + (high-low)*(at-float64(i)))
}

// sweepCellDrawPoint adds one cell and its interval.
func sweepCellDrawPoint(c *record.SweepCell, b *strings.Builder, x float64, y func(float64) float64) {
	if c.GoodputBps <= 0 {
		return
	}
	if c.CI95Bps != nil && c.CI95Bps[1] < 1e15 {
		top := y(c.CI95Bps[1])
		bottom := y(c.CI95Bps[0])
		if bottom-top > 3 { // else it hides behind the point
			fmt.Fprintf(b, `<path class="ci" d="M%.1f %.1fV%.1fm-3 0h6M%.1f %.1fh6"/>`, x, top, bottom, x-3, top)
		}
	}
	open := ""
	if c.Predicted {
		open = ` class="open"`
	}
	fmt.Fprintf(b, `<circle%s cx="%.1f" cy="%.1f" r="2.6"><title>%s</title></circle>`, open, x, y(c.GoodputBps),
		html.EscapeString(sweepCellTip(c)))
}

// spread moves labels apart: neighbours are at least apart from each other, in their order,
// between two bounds.
func spread(at []float64, apart, low, high float64) []float64 {
	order := make([]int, len(at))
	for i := range order {
		order[i] = i
	}
	// From the top down; of lines that end together the last is the highest.
	slices.SortStableFunc(order, func(a, b int) int {
		if d := at[a] - at[b]; math.Abs(d) > 1 {
			return int(math.Copysign(1, d))
		}
		return b - a
	})
	apart = math.Min(apart, (high-low)/math.Max(float64(len(at)-1), 1))
	out := make([]float64, len(at))
	next := low
	for _, i := range order {
		out[i] = math.Max(at[i], next)
		next = out[i] + apart
	}
	next = high
	for _, i := range slices.Backward(order) {
		out[i] = math.Min(out[i], next)
		next = out[i] - apart
	}
	return out
}
