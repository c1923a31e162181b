package svg

import (
	"fmt"
	"html"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// figure is one small drawing with axes that begin at 0.
type figure struct {
	title, xUnit, yUnit string
	xMost, yMost        float64
	b                   strings.Builder
}

const (
	figureWidth, figureHeight = 380.0, 230.0
	figureLeft, figureTop     = 62.0, 12.0
	figureRight, figureBottom = 14.0, 36.0
)

func (f *figure) x(v float64) float64 {
	return figureLeft + v/f.xMost*(figureWidth-figureLeft-figureRight)
}

func (f *figure) y(v float64) float64 {
	return figureHeight - figureBottom - v/f.yMost*(figureHeight-figureTop-figureBottom)
}

// begin draws the frame; percent says that x is a share.
func (f *figure) begin(xName string, percent bool) {
	fmt.Fprintf(&f.b, `<svg class="figure" viewBox="0 0 %g %g" role="img" aria-label="%s">`, figureWidth, figureHeight,
		html.EscapeString(f.title))
	for _, v := range ticks(0, f.yMost, 5) {
		fmt.Fprintf(&f.b, `<path class="grid" d="M%g %.1fH%g"/><text class="end" x="%g" y="%.1f">%s</text>`, figureLeft,
			f.y(v), figureWidth-figureRight, figureLeft-6, f.y(v)+4, quantity(v, f.yUnit))
	}
	for _, v := range ticks(0, f.xMost, 5) {
		label := quantity(v, f.xUnit)
		if percent {
			label = fmt.Sprintf("%.0f %%", 100*v)
		}
		fmt.Fprintf(&f.b, `<path class="grid" d="M%.1f %gV%g"/><text class="mid" x="%.1f" y="%g">%s</text>`, f.x(v),
			figureTop, figureHeight-figureBottom, f.x(v), figureHeight-figureBottom+15, label)
	}
	fmt.Fprintf(&f.b, `<text class="mid" x="%.1f" y="%g">%s</text>`, (figureLeft+figureWidth-figureRight)/2,
		figureHeight-5, html.EscapeString(xName))
}

func (f *figure) line(class string, points ...[2]float64) {
	fmt.Fprintf(&f.b, `<path class="%s" d="`, class)
	for i, p := range points {
		fmt.Fprintf(&f.b, "%c%.1f %.1f", "ML"[min(i, 1)], f.x(min(max(p[0], 0), f.xMost)), f.y(min(max(p[1], 0), f.yMost)))
	}
	f.b.WriteString(`"/>`)
}

// level draws a value across the whole width.
func (f *figure) level(class string, v float64) {
	f.line(class, [2]float64{0, v}, [2]float64{f.xMost, v})
}

func (f *figure) dot(class string, x, y float64, tip string) {
	fmt.Fprintf(&f.b, `<circle class="%s" cx="%.1f" cy="%.1f" r="4"><title>%s</title></circle>`, class,
		f.x(min(x, f.xMost)), f.y(min(y, f.yMost)), html.EscapeString(tip))
}

func (f *figure) done() Markup {
	f.b.WriteString(`</svg>`)
	return Markup(f.b.String()) // numbers, and texts escaped above
}

// RFC6349DirectionLadder draws the goodput of each window and the rate that it allows.
func RFC6349DirectionLadder(d *record.RFC6349Direction) Markup {
	bdp := d.BDPBytes
	rtt := d.RTT.Seconds()
	most := d.MaxTCPBps
	f := &figure{title: "goodput by window", xUnit: "", yUnit: "bps"}
	type point struct {
		share, bps float64
		class, tip string
	}
	var points []point
	for i := range d.Tests {
		t := &d.Tests[i]
		if t.GoodputBps == nil || t.Kind == rfc6349.Both || bdp == 0 || rtt == 0 {
			continue
		}
		p := point{t.Share, *t.GoodputBps, "one", fmt.Sprintf("%s, %s", text.RFC6349TestTitle(t),
			units.Rate(*t.GoodputBps))}
		switch {
		case t.Kind == rfc6349.Several:
			p.class = "several"
		case t.Kind != rfc6349.Window && t.Share == 0:
			p.class = "automatic"
			if run := t.Typical(); run != nil && run.InFlightBytes > 0 {
				p.share = float64(run.InFlightBytes) / bdp
			}
		}
		if p.share > 0 {
			points = append(points, p)
			f.xMost = max(f.xMost, p.share*1.05)
			f.yMost = max(f.yMost, p.bps)
		}
	}
	if len(points) == 0 {
		return ""
	}
	carries := 0.0
	for i := range d.Tests {
		carries = max(carries, d.Tests[i].AchievableBps)
	}
	f.yMost = max(f.yMost, carries, most) * 1.12
	f.begin("windows as a share of the BDP", true)
	knee := carries / (bdp * 8 / rtt)
	f.line("allowed", [2]float64{0, 0}, [2]float64{min(knee, f.xMost), carries * min(1, f.xMost/knee)},
		[2]float64{f.xMost, carries})
	if d.CommittedBps > 0 {
		f.level("due", most)
	}
	for _, p := range points {
		f.dot(p.class, p.share, p.bps, p.tip)
	}
	return f.done()
}

// RFC6349DirectionCourse draws the single connection's goodput over time.
func RFC6349DirectionCourse(d *record.RFC6349Direction) Markup {
	run := shown(d)
	if run == nil || len(d.Course) < 2 || run.Duration <= 0 {
		return ""
	}
	f := &figure{title: "goodput over time", xUnit: "s", yUnit: "bps", xMost: run.Duration.Seconds(),
		yMost: d.MaxTCPBps}
	points := f.series(d.Course, 1)
	f.yMost *= 1.12
	f.begin("time since the first byte", false)
	f.level("due", d.MaxTCPBps)
	f.line("rate", points...)
	return f.done()
}

// RFC6349DirectionRoundTrips draws the same run's round trip over time and the idle one.
func RFC6349DirectionRoundTrips(d *record.RFC6349Direction) Markup {
	run := shown(d)
	if run == nil || len(d.RoundTrips) < 2 || run.Duration <= 0 {
		return ""
	}
	f := &figure{title: "round trip over time", xUnit: "s", yUnit: "s", xMost: run.Duration.Seconds(),
		yMost: d.RTT.Seconds()}
	points := f.series(d.RoundTrips, 1e-9)
	f.yMost *= 1.15
	f.begin("time since the first byte", false)
	f.level("idle", d.RTT.Seconds())
	f.line("rate", points...)
	return f.done()
}

// shown returns the typical run of one connection with a sufficient window.
func shown(d *record.RFC6349Direction) *record.RFC6349Run {
	if test := d.Find(rfc6349.Full); test != nil {
		return test.Typical()
	}
	return nil
}

// series turns points into the figure's units, seconds across and per for each value up,
// and makes room for them.
func (f *figure) series(points []flow.Point, per float64) (all [][2]float64) {
	for _, p := range points {
		v := float64(p.Value) * per
		all = append(all, [2]float64{float64(p.At) / 1e9, v})
		f.yMost = max(f.yMost, v)
	}
	return all
}
