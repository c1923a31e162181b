package svg

import (
	_ "embed"
	"errors"
	"fmt"
	"html"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Tokens has the colours, the type and the distances of every page and picture, as a style sheet.
//
//go:embed tokens.css
var Tokens string

//go:embed picture.css
var pictureStyle string

// ErrNothingToDraw means that the sender of a transfer was not sampled: it is a stock far end
// or a system without TCP_INFO.
var ErrNothingToDraw = errors.New("nothing is known of the sender but its rate: a picture shows what its kernel counts")

// Picture draws how a measured transfer went, as an SVG file of its own: throughput, bytes
// in flight under the two windows, and round trips, of the sender's first connection.
func Picture(w io.Writer, d *record.Direction) error {
	if len(d.Curves.InFlight) < 3 {
		return ErrNothingToDraw
	}
	charts := pictureOf(&d.Curves)
	height := pictureTop
	for i := range charts {
		height += charts[i].height
	}
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img"><style>%s</style>`,
		chartWidth, height, Tokens+pictureStyle)
	fmt.Fprintf(w, `<rect class="paper" width="100%%" height="100%%"/><text class="headline" x="%g" y="20">%s</text>`,
		plotLeft, html.EscapeString(pictureTitle(d)))
	y := pictureTop
	for i := range charts {
		io.WriteString(w, string(charts[i].at(y)))
		legend(w, &charts[i], y)
		y += charts[i].height
	}
	_, err := io.WriteString(w, "</svg>\n")
	return err
}

// DirectionCharts draws the same curves for a page. Without samples of the sender it draws the transfer's intervals, if
// there are any.
func DirectionCharts(d *record.Direction) (all []Markup) {
	charts := intervalCharts(d.Intervals)
	if len(d.Curves.InFlight) >= 3 {
		charts = pictureOf(&d.Curves)
	}
	for _, c := range charts {
		all = append(all, c.svg())
	}
	return all
}

// intervalCharts draws the goodput of a transfer's intervals, and the RTT where the sender reported it.
func intervalCharts(intervals []record.Interval) []chart {
	if len(intervals) < 3 {
		return nil
	}
	var rate, rtt []flow.Point
	for _, one := range intervals {
		rate = append(rate, flow.Point{At: int64(one.StartS * 1e9), Value: int64(one.GoodputBps)})
		if one.RTT > 0 {
			rtt = append(rtt, flow.Point{At: int64(one.EndS * 1e9), Value: int64(one.RTT)})
		}
	}
	end := int64(intervals[len(intervals)-1].EndS * 1e9)
	rate = append(rate, flow.Point{At: end, Value: rate[len(rate)-1].Value})
	charts := []chart{{title: "goodput", unit: "bps", per: 1, to: end, height: 150, headroom: headroom,
		lines: []chartLine{{name: "goodput", class: "data", points: rate, step: true}}}}
	if len(rtt) >= 3 {
		charts = append(charts, chart{title: "round trip", unit: "s", per: 1e-9, to: end, height: 130, headroom: headroom,
			lines: []chartLine{{name: "smoothed", class: "data", points: rtt}}})
	}
	return charts
}

const (
	pictureTop = 30.0
	headroom   = 0.25
)

func pictureTitle(d *record.Direction) string {
	title := string(d.Limiter)
	if d.Subtype != "" {
		title += ", " + verdict.Label(d.Subtype)
	}
	if d.GoodputBps != nil {
		title += ": " + units.Rate(*d.GoodputBps).String()
	}
	return title + " (" + string(d.Confidence) + " confidence)"
}

// pictureOf puts a connection's curves into charts of one time axis.
func pictureOf(c *record.DirectionCurves) []chart {
	end := c.InFlight[len(c.InFlight)-1].At
	mostFlying := most(c.InFlight)
	return []chart{
		{title: "throughput", unit: "bps", per: 1, to: end, height: 130, headroom: headroom,
			lines: []chartLine{{name: "acknowledged", class: "data", points: c.Rate}}},
		{title: "in flight", unit: "bytes", per: 1, to: end, height: 190, headroom: headroom,
			lines: []chartLine{
				{name: "receiver's window", class: "edge", points: c.Window, step: true, rides: most(c.Window)/3 > mostFlying},
				{name: "congestion window", class: "acks", points: c.Cwnd, step: true, rides: most(c.Cwnd)/3 > mostFlying},
				{name: "in flight", class: "data", points: c.InFlight, step: true}},
			marks: []chartMarks{{"retransmitted", "retransmissions", c.Retransmissions}}},
		{title: "round trip", unit: "s", per: 1e-9, to: end, height: 130, headroom: headroom,
			lines: []chartLine{{name: "smoothed", class: "data", points: c.RTT}}},
	}
}

func most(points []flow.Point) (value int64) {
	for _, p := range points {
		value = max(value, p.Value)
	}
	return value
}

// legend names a chart's lines at its upper right, each with a piece of the line. A line
// that lies above the chart says so.
func legend(w io.Writer, c *chart, y float64) {
	type key struct{ name, class string }
	var keys []key
	_, high := c.bounds()
	for _, l := range c.lines {
		name := l.name
		if l.rides && float64(most(l.points)) > high {
			name += " (" + quantity(float64(most(l.points))*c.per, c.unit) + ", above)"
		}
		keys = append(keys, key{name, l.class})
	}
	for _, m := range c.marks {
		if len(m.marks) > 0 {
			keys = append(keys, key{m.name, m.class})
		}
	}
	x := chartWidth - plotRight - 8
	for i := len(keys) - 1; i >= 0; i-- {
		width := 7 * float64(len(keys[i].name))
		x -= width
		fmt.Fprintf(w, `<text x="%.0f" y="%.0f">%s</text>`, x, y+plotTop+14, html.EscapeString(keys[i].name))
		fmt.Fprintf(w, `<g class="plot"><path class="%s" d="M%.0f %.0fh22"/></g>`, keys[i].class, x-28, y+plotTop+10)
		x -= 46
	}
}
