// Package svg draws records and measured transfers as pictures without
// scripts.
package svg

import (
	"context"
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// Markup is SVG of this package: its pieces are numbers, names from closed lists and escaped text.
type Markup string

// Render writes the markup into a page.
func (m Markup) Render(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, string(m))
	return err
}

// A chart is drawn as static SVG, complete without scripts; a script may redraw its
// lines for another span of time from the same points.
type chart struct {
	title  string
	unit   string  // "bytes", "bps" or "s"
	per    float64 // units of one value
	lines  []chartLine
	marks  []chartMarks
	from   int64 // nanoseconds
	to     int64
	height float64
	width  float64 // 0: chartWidth
	// headroom is the share of the scale left free above all values, for a legend.
	headroom float64
	bands    []record.Band
}

type chartLine struct {
	name   string
	class  string
	points []flow.Point
	step   bool // a value applies until the next
	rides  bool // does not stretch the scale: the window's edge may lie far above
}

type chartMarks struct {
	name, class string
	marks       []flow.Mark
}

const (
	chartWidth = 960.0
	plotLeft   = 70.0
	plotRight  = 12.0
	plotTop    = 8.0
	plotBottom = 20.0
)

// wide returns the chart's width.
func (c *chart) wide() float64 {
	if c.width > 0 {
		return c.width
	}
	return chartWidth
}

// svg draws the chart as wide as its place on a page.
func (c *chart) svg() Markup { return c.draw("") }

// at draws the chart inside another drawing, so far from its top.
func (c *chart) at(y float64) Markup {
	return c.draw(fmt.Sprintf(` y="%g" width="%g" height="%g"`, y, chartWidth, c.height))
}

func (c *chart) draw(place string) Markup {
	low, high := c.bounds()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart"`+place+
		` viewBox="0 0 %g %g" role="img" aria-label="%s" data-unit="%s" data-per="%g">`, c.wide(), c.height,
		html.EscapeString(c.title), c.unit, c.per)
	fmt.Fprintf(&b, `<g class="axes">%s</g>`, c.axes(low, high))
	fmt.Fprintf(&b, `<text class="title" x="%g" y="%g">%s</text>`, plotLeft+8, plotTop+14,
		html.EscapeString(c.title))
	fmt.Fprintf(&b, `<svg class="plot" x="%g" y="%g" width="%g" height="%g">`, plotLeft, plotTop,
		c.wide()-plotLeft-plotRight, c.height-plotTop-plotBottom)
	for _, band := range c.bands {
		x := c.x(band.StartNs)
		to := c.x(band.EndNs)
		limited := html.EscapeString(string(band.Limiter))
		fmt.Fprintf(&b, `<rect class="band %s" x="%.1f" width="%.1f" height="%g"><title>%s</title></rect>`, limited, x,
			max(to-x, 0.5), c.height, limited)
	}
	for _, l := range c.lines {
		fmt.Fprintf(&b, `<path class="%s" data-line="%s" d="%s"/>`, l.class, l.name, c.path(l, low, high))
	}
	for _, m := range c.marks {
		fmt.Fprintf(&b, `<path class="%s" data-marks="%s" d="%s"/>`, m.class, m.name, c.strokes(m.marks, low, high))
	}
	b.WriteString(`</svg></svg>`)
	return Markup(b.String()) // every piece is a number or escaped above
}

// bounds of the values shown.
func (c *chart) bounds() (low, high float64) {
	high = math.Inf(-1)
	for _, l := range c.lines {
		if l.rides {
			continue
		}
		for _, p := range l.points {
			high = max(high, float64(p.Value))
		}
	}
	if !(high > 0) {
		high = 1
	}
	return 0, high * (1.05 + c.headroom)
}

func (c *chart) x(at int64) float64 {
	return float64(at-c.from) / float64(max(c.to-c.from, 1)) * (c.wide() - plotLeft - plotRight)
}

func (c *chart) y(v, low, high float64) float64 {
	h := c.height - plotTop - plotBottom
	return max(h-(v-low)/(high-low)*h, -h)
}

// path draws a line with at most two points for each pixel: the least and the largest.
func (c *chart) path(l chartLine, low, high float64) string {
	var b strings.Builder
	write := func(x, y float64) {
		if b.Len() == 0 {
			b.WriteByte('M')
		} else {
			b.WriteByte('L')
		}
		b.WriteString(strconv.FormatFloat(x, 'f', 1, 64) + " " + strconv.FormatFloat(y, 'f', 1, 64))
	}
	last := 0.0
	for i := 0; i < len(l.points); {
		column := math.Floor(c.x(l.points[i].At))
		first := l.points[i].Value
		least := l.points[i].Value
		most := l.points[i].Value
		end := l.points[i].Value
		for ; i < len(l.points) && math.Floor(c.x(l.points[i].At)) == column; i++ {
			end = l.points[i].Value
			least = min(least, end)
			most = max(most, end)
		}
		if l.step && b.Len() > 0 {
			write(column, last)
		}
		write(column, c.y(float64(first), low, high))
		if least != most {
			write(column, c.y(float64(least), low, high))
			write(column, c.y(float64(most), low, high))
			write(column, c.y(float64(end), low, high))
		}
		last = c.y(float64(end), low, high)
	}
	return b.String()
}

// strokes draws ranges of values as short upright lines, one for each place at most.
func (c *chart) strokes(marks []flow.Mark, low, high float64) string {
	var b strings.Builder
	lastX := -1.0
	lastY := -1.0
	for _, m := range marks {
		x := math.Round(c.x(m.At))
		y := math.Round(c.y(float64(m.From), low, high))
		if x == lastX && math.Abs(y-lastY) < 2 {
			continue
		}
		lastX = x
		lastY = y
		top := min(c.y(float64(m.To), low, high), y-3)
		fmt.Fprintf(&b, "M%.0f %.0fV%.1f", x, y, top)
	}
	return b.String()
}

func (c *chart) axes(low, high float64) string {
	var b strings.Builder
	bottom := c.height - plotBottom
	for _, v := range ticks(low*c.per, high*c.per, 5) {
		y := plotTop + c.y(v/c.per, low, high)
		fmt.Fprintf(&b, `<path class="grid" d="M%g %.1fH%g"/><text class="left" x="%g" y="%.1f">%s</text>`, plotLeft, y,
			c.wide()-plotRight, plotLeft-5, y+4, quantity(v, c.unit))
	}
	for _, v := range ticks(0, float64(c.to-c.from)/1e9, int(c.wide()/120)) {
		x := plotLeft + c.x(c.from+int64(v*1e9))
		fmt.Fprintf(&b, `<path class="grid" d="M%.1f %gV%g"/><text class="below" x="%.1f" y="%g">%s</text>`, x, plotTop,
			bottom, x, bottom+14, quantity(v, "s"))
	}
	return b.String()
}

// ticks are round values between low and high, about n of them.
func ticks(low, high float64, n int) []float64 {
	span := high - low
	if !(span > 0) || math.IsInf(span, 0) {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10(span/float64(n))))
	for _, f := range []float64{1, 2, 5, 10} {
		if span/(step*f) <= float64(n) {
			step *= f
			break
		}
	}
	var all []float64
	for v := math.Ceil(low/step) * step; v <= high && len(all) <= 2*n; v += step {
		all = append(all, v)
	}
	return all
}

// quantity prints an axis's value; the page's script prints alike.
func quantity(v float64, unit string) string {
	if unit == "s" {
		switch {
		case v == 0:
			return "0"
		case math.Abs(v) < 0.0995:
			return text.Trimmed(v*1e3) + " ms"
		}
		return text.Trimmed(v) + " s"
	}
	prefixes := []string{"", "k", "M", "G", "T"}
	i := 0
	for math.Abs(v) >= 999.5 && i < len(prefixes)-1 {
		v /= 1000
		i++
	}
	suffix := map[string]string{"bytes": "B", "bps": "bit/s"}[unit]
	return text.Trimmed(v) + " " + prefixes[i] + suffix
}
