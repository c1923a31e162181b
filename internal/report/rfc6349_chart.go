package report

import (
	"fmt"
	"html/template"
	"strings"

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
	fmt.Fprintf(&f.b, `<svg class="figure" viewBox="0 0 %g %g" role="img" aria-label="%s">`, figureWidth, figureHeight, template.HTMLEscapeString(f.title))
	for _, v := range ticks(0, f.yMost, 5) {
		fmt.Fprintf(&f.b, `<path class="grid" d="M%g %.1fH%g"/><text class="end" x="%g" y="%.1f">%s</text>`, figureLeft, f.y(v), figureWidth-figureRight, figureLeft-6, f.y(v)+4, quantity(v, f.yUnit))
	}
	for _, v := range ticks(0, f.xMost, 5) {
		label := quantity(v, f.xUnit)
		if percent {
			label = fmt.Sprintf("%.0f %%", 100*v)
		}
		fmt.Fprintf(&f.b, `<path class="grid" d="M%.1f %gV%g"/><text class="mid" x="%.1f" y="%g">%s</text>`, f.x(v), figureTop, figureHeight-figureBottom, f.x(v), figureHeight-figureBottom+15, label)
	}
	fmt.Fprintf(&f.b, `<text class="mid" x="%.1f" y="%g">%s</text>`, (figureLeft+figureWidth-figureRight)/2, figureHeight-5, template.HTMLEscapeString(xName))
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
	fmt.Fprintf(&f.b, `<circle class="%s" cx="%.1f" cy="%.1f" r="4"><title>%s</title></circle>`, class, f.x(min(x, f.xMost)), f.y(min(y, f.yMost)), template.HTMLEscapeString(tip))
}

func (f *figure) done() template.HTML {
	f.b.WriteString(`</svg>`)
	return template.HTML(f.b.String()) // numbers, and texts escaped above
}

// Ladder draws the goodput of each window beside what it allows.
func (d *RFC6349Direction) Ladder() template.HTML {
	in := d.direction
	f := &figure{title: "goodput by window", xUnit: "", yUnit: "bps"}
	type point struct {
		share, bps float64
		class, tip string
	}
	var points []point
	for i := range d.Tests {
		t := &d.Tests[i]
		if t.GoodputBps == nil || t.Kind == rfc6349.Both || in.BDPBytes == 0 {
			continue
		}
		p := point{in.Tests[i].Share, *t.GoodputBps, "one", fmt.Sprintf("%s, %s", t.Title(), units.Rate(*t.GoodputBps))}
		switch {
		case t.Kind == rfc6349.Several:
			p.class = "several"
		case t.Kind != rfc6349.Window && t.BDPRatio == nil:
			p.class = "automatic"
			p.share = float64(t.test.Typical().Reached) / in.BDPBytes
		}
		if p.share > 0 {
			points = append(points, p)
			f.xMost, f.yMost = max(f.xMost, p.share*1.05), max(f.yMost, p.bps)
		}
	}
	if len(points) == 0 {
		return ""
	}
	carries := 0.0
	for _, t := range in.Tests {
		carries = max(carries, t.AchievableBps)
	}
	f.yMost = max(f.yMost, carries, in.MaxTCPBps) * 1.12
	f.begin("windows as a share of the BDP", true)
	knee := carries / (in.BDPBytes * 8 / d.rtt)
	f.line("allowed", [2]float64{0, 0}, [2]float64{min(knee, f.xMost), carries * min(1, f.xMost/knee)}, [2]float64{f.xMost, carries})
	if in.Committed > 0 {
		f.level("due", in.MaxTCPBps)
	}
	for _, p := range points {
		f.dot(p.class, p.share, p.bps, p.tip)
	}
	return f.done()
}

// LadderText, CourseText and RoundTripsText say what the drawings show.
func (d *RFC6349Direction) LadderText() string {
	text := "Goodput by window. Dashed: what the window and the bottleneck allow."
	if d.direction.Committed > 0 {
		text += " Red: " + units.Rate(d.direction.MaxTCPBps).String() + ", the largest TCP rate of what was committed to."
	}
	return text
}

func (d *RFC6349Direction) CourseText() string {
	return "Goodput over time of one connection whose window suffices. Red: " + units.Rate(d.direction.MaxTCPBps).String() + ", the largest TCP rate."
}

func (d *RFC6349Direction) RoundTripsText() string {
	return "Its round trip. Dashed: " + secondsText(d.rtt) + ", the idle one; what lies above is queue."
}

// Course draws the single connection's goodput over time.
func (d *RFC6349Direction) Course() template.HTML {
	run := d.shown()
	if run == nil || len(run.Intervals) < 3 {
		return ""
	}
	f := &figure{title: "goodput over time", xUnit: "s", yUnit: "bps", xMost: run.Duration.Seconds(), yMost: d.direction.MaxTCPBps}
	var points [][2]float64
	step := max(len(run.Intervals)/200, 1)
	for i := 0; i+step <= len(run.Intervals); i += step {
		var bytes int64
		for _, one := range run.Intervals[i : i+step] {
			bytes += one.Bytes
		}
		from, to := run.Intervals[i].Start, run.Intervals[i+step-1].End
		v := bps(bytes, to-from)
		points = append(points, [2]float64{from.Seconds(), v}, [2]float64{to.Seconds(), v})
		f.yMost = max(f.yMost, v)
	}
	f.yMost *= 1.12
	f.begin("time since the first byte", false)
	f.level("due", d.direction.MaxTCPBps)
	f.line("rate", points...)
	return f.done()
}

// RoundTrips draws the same run's round trip over time beside the idle one.
func (d *RFC6349Direction) RoundTrips() template.HTML {
	run := d.shown()
	if run == nil || len(run.RTTs) < 2 {
		return ""
	}
	f := &figure{title: "round trip over time", xUnit: "s", yUnit: "s", xMost: run.Duration.Seconds(), yMost: d.rtt}
	var points [][2]float64
	for _, r := range run.RTTs {
		points = append(points, [2]float64{r.At.Seconds(), r.Mean.Seconds()})
		f.yMost = max(f.yMost, r.Mean.Seconds())
	}
	f.yMost *= 1.15
	f.begin("time since the first byte", false)
	f.level("idle", d.rtt)
	f.line("rate", points...)
	return f.done()
}

// shown is the run that stands for one connection with a window that suffices.
func (d *RFC6349Direction) shown() *rfc6349.Outcome {
	if test := d.direction.Test(rfc6349.Full); test != nil {
		return test.Typical()
	}
	return nil
}
