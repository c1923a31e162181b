package svg

import (
	"fmt"
	"math"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// The scale of a gauge: from 100 kbit/s, five decades.
const (
	gaugeLow     = 1e5
	gaugeDecades = 5
)

// gaugeMarks are the labelled rates of a gauge.
var gaugeMarks = []struct {
	name string
	bps  float64
}{{"1M", 1e6}, {"10M", 1e7}, {"100M", 1e8}, {"1G", 1e9}}

// gaugeShare returns the place of a rate on a gauge, from 0 to 100.
func gaugeShare(bps float64) float64 {
	if !(bps > gaugeLow) {
		return 0
	}
	return math.Min(100*math.Log10(bps/gaugeLow)/gaugeDecades, 100)
}

// Gauge draws a rate on a logarithmic half circle. The page's script moves the same path during a test.
func Gauge(bps float64) Markup {
	const arc = "M20 76A60 60 0 0 1 140 76"
	marks := ""
	for _, m := range gaugeMarks {
		angle := math.Pi * (1 - gaugeShare(m.bps)/100)
		marks += fmt.Sprintf(`<text class="mid" x="%.1f" y="%.1f">%s</text>`, 80+74*math.Cos(angle), 79-72*math.Sin(angle),
			m.name)
	}
	return Markup(fmt.Sprintf(`<svg class="gauge" viewBox="0 0 160 84" aria-hidden="true"><path class="track" d="%s"/>`+
		`<path class="filled" pathLength="100" d="%s" stroke-dasharray="%.1f 200"/>%s</svg>`, arc, arc, gaugeShare(bps), marks))
}

// speedWidth is the width of the charts of a speed test: two fit next to each other, one fills a telephone.
const speedWidth = 480.0

// speedClasses are the lines of one direction's phases, in their order.
var speedClasses = []string{"before", "data"}

// SpeedCharts draws one direction of a speed test: the goodput of its phases over time, and the RTT of small packets
// during them with the idle RTT.
func SpeedCharts(phases []*record.Direction) (all []Markup) {
	goodput := chart{title: "goodput", unit: "bps", per: 1, height: 170, width: speedWidth, headroom: headroom}
	rtt := chart{title: "round trip of small packets", unit: "s", per: 1e-9, height: 150, width: speedWidth,
		headroom: headroom}
	for i, d := range phases[:min(len(phases), len(speedClasses))] {
		class := speedClasses[len(speedClasses)-1]
		if i < len(phases)-1 {
			class = speedClasses[0]
		}
		var points []flow.Point
		for _, one := range d.Intervals {
			points = append(points, flow.Point{At: int64((one.StartS + one.EndS) / 2 * 1e9), Value: int64(one.GoodputBps)})
			goodput.to = max(goodput.to, int64(one.EndS*1e9))
		}
		if len(points) >= 3 {
			goodput.lines = append(goodput.lines, chartLine{name: fmt.Sprint("goodput ", i), class: class, points: points})
		}
		if probes := d.Curves.Probes; len(probes) >= 3 {
			rtt.lines = append(rtt.lines, chartLine{name: fmt.Sprint("rtt ", i), class: class, points: probes})
			rtt.to = max(rtt.to, probes[len(probes)-1].At)
		}
	}
	if goodput.lines != nil {
		all = append(all, goodput.svg())
	}
	if rtt.lines != nil {
		if l := phases[0].Latency; l != nil {
			idle := int64(l.IdleS * 1e9)
			rtt.lines = append(rtt.lines, chartLine{name: "idle", class: "acks", points: []flow.Point{{Value: idle},
				{At: rtt.to, Value: idle}}})
		}
		all = append(all, rtt.svg())
	}
	return all
}
