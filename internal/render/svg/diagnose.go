package svg

import (
	"math"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// CapturedDirectionDrawn says that the points for graphs were kept.
func CapturedDirectionDrawn(d *record.CapturedDirection) bool {
	return len(d.Curves.Data) > 0 && lasted(d) > 0
}

// lasted is the direction's length in nanoseconds.
func lasted(d *record.CapturedDirection) int64 {
	return int64(math.Round(min(max(d.DurationS, 0), 1e9) * 1e9))
}

// CapturedDirectionCharts are the direction's pictures.
func CapturedDirectionCharts(d *record.CapturedDirection) []Markup {
	var all []Markup
	for _, c := range capturedDirectionCharts(d) {
		all = append(all, c.svg())
	}
	return all
}

func capturedDirectionCharts(d *record.CapturedDirection) []chart {
	g := &d.Curves
	to := lasted(d)
	rides := d.WindowMaxBytes != nil && *d.WindowMaxBytes/3 > d.OutstandingMaxBytes
	return []chart{
		{title: "time and sequence", unit: "bytes", per: 1, to: to, height: 320, bands: g.Bands,
			lines: []chartLine{{name: "edge", class: "edge", points: g.Edge, step: true, rides: true},
				{name: "data", class: "data", points: g.Data}, {name: "acks", class: "acks", points: g.Acks, step: true}},
			marks: []chartMarks{{"sacks", "sacks", g.SACKs}, {"retransmissions", "retransmissions", g.Retransmissions}}},
		{title: "outstanding and window", unit: "bytes", per: 1, to: to, height: 180, bands: g.Bands,
			lines: []chartLine{{name: "window", class: "edge", points: g.Window, step: true, rides: rides},
				{name: "outstanding", class: "data", points: g.Outstanding, step: true}}},
		{title: "throughput", unit: "bps", per: 1, to: to, height: 140,
			lines: []chartLine{{name: "rate", class: "acks", points: g.Rate, step: true}}},
		{title: "round trip", unit: "s", per: 1e-9, to: to, height: 140,
			lines: []chartLine{{name: "rtt", class: "data", points: g.RTT}}},
	}
}

// Key is a line of a legend: the class of the line and its name.
type Key struct{ Class, Name string }

// capturedKeys are the names of the lines and marks in a direction's charts.
var capturedKeys = []Key{{"data", "sent, outstanding"}, {"acks", "acknowledged"}, {"edge", "window"},
	{"retransmissions", "retransmitted"}, {"sacks", "SACK"}}

// CapturedDirectionKeys returns the lines that occur in a direction's charts.
func CapturedDirectionKeys(d *record.CapturedDirection) []Key {
	drawn := map[string]bool{}
	for _, c := range capturedDirectionCharts(d) {
		for _, l := range c.lines {
			drawn[l.class] = drawn[l.class] || len(l.points) > 0
		}
		for _, m := range c.marks {
			drawn[m.class] = drawn[m.class] || len(m.marks) > 0
		}
	}
	return slices.DeleteFunc(slices.Clone(capturedKeys), func(k Key) bool { return !drawn[k.Class] })
}

// CapturedDirectionLimiters returns the limiters whose bands occur in a direction's charts.
func CapturedDirectionLimiters(d *record.CapturedDirection) (names []verdict.Name) {
	for _, name := range verdict.Names() {
		if slices.ContainsFunc(d.Curves.Bands, func(b record.Band) bool { return b.Limiter == name }) {
			names = append(names, name)
		}
	}
	return names
}

// Points are the points of a direction's charts for the page's script: lists of differences, times in microseconds
// from the first byte.
type Points struct {
	Duration int64              `json:"duration"` // microseconds
	Bands    [][3]any           `json:"bands"`    // start, end, limiter
	Lines    map[string][]int64 `json:"lines"`
	Marks    map[string][]int64 `json:"marks"`
}

// CapturedDirectionPoints returns the points of a direction's charts.
func CapturedDirectionPoints(d *record.CapturedDirection) Points {
	doc := Points{lasted(d) / 1000, [][3]any{}, map[string][]int64{}, map[string][]int64{}}
	for _, band := range d.Curves.Bands {
		doc.Bands = append(doc.Bands, [3]any{band.StartNs / 1000, band.EndNs / 1000, band.Limiter})
	}
	for _, c := range capturedDirectionCharts(d) {
		for _, l := range c.lines {
			var t, v int64
			list := make([]int64, 0, 2*len(l.points))
			for _, p := range l.points {
				at := p.At / 1000
				list = append(list, at-t, p.Value-v)
				t = at
				v = p.Value
			}
			doc.Lines[l.name] = list
		}
		for _, m := range c.marks {
			var t, v int64
			list := make([]int64, 0, 3*len(m.marks))
			for _, mark := range m.marks {
				at := mark.At / 1000
				list = append(list, at-t, mark.From-v, mark.To-mark.From)
				t = at
				v = mark.From
			}
			doc.Marks[m.name] = list
		}
	}
	return doc
}
