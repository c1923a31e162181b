package svg

import (
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// BeforeAfterCharts draws a connection before a change and one after it on the same axes: throughput, bytes in flight
// and round trips. It returns none if one of the two was not sampled.
func BeforeAfterCharts(before, after *record.Direction) (all []Markup) {
	was := &before.Curves
	is := &after.Curves
	if len(was.InFlight) < 3 || len(is.InFlight) < 3 {
		return nil
	}
	to := max(was.InFlight[len(was.InFlight)-1].At, is.InFlight[len(is.InFlight)-1].At)
	for _, one := range []struct {
		title, unit string
		per         float64
		step        bool
		of          func(*record.DirectionCurves) []flow.Point
	}{
		{"throughput", "bps", 1, false, func(c *record.DirectionCurves) []flow.Point { return c.Rate }},
		{"bytes in flight", "bytes", 1, true, func(c *record.DirectionCurves) []flow.Point { return c.InFlight }},
		{"round trip", "s", 1e-9, false, func(c *record.DirectionCurves) []flow.Point { return c.RTT }},
	} {
		c := chart{title: one.title, unit: one.unit, per: one.per, to: to, height: 150, headroom: headroom,
			lines: []chartLine{{name: "before", class: "before", points: one.of(was), step: one.step},
				{name: "after", class: "data", points: one.of(is), step: one.step}}}
		all = append(all, c.svg())
	}
	return all
}

// barWidth is the length of the axis of Bar in its own pixels. Bars are stretched to their place.
const barWidth = 1000.0

// Bar draws one value and its interval on an axis. Bars of one axis have the same mark and full.
func Bar(b text.ReceiptBar, axis text.ReceiptAxis) Markup {
	x := func(v float64) float64 { return barWidth * math.Min(math.Max(v/axis.Full, 0), 1) }
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="bar" viewBox="0 0 %g 20" preserveAspectRatio="none" aria-hidden="true">`+
		`<rect class="%s" y="2" width="%.1f" height="16"/>`, barWidth, html.EscapeString(b.Class), x(b.Value))
	if b.High > b.Low {
		fmt.Fprintf(&out, `<rect class="ci" x="%.1f" y="8" width="%.1f" height="4"/>`, x(b.Low), x(b.High)-x(b.Low))
	}
	if axis.Mark > 0 {
		fmt.Fprintf(&out, `<path class="mark" d="M%.1f 0V20"/>`, x(axis.Mark))
	}
	out.WriteString(`</svg>`)
	return Markup(out.String()) // numbers, and a class that is escaped
}
