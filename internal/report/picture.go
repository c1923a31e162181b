package report

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

//go:embed page/picture.css
var pictureStyle string

// ErrNothingToDraw says that the sender of a transfer was not sampled: a stock far end,
// or a system without TCP_INFO.
var ErrNothingToDraw = errors.New("nothing is known of the sender but its rate: a picture shows what its kernel counts")

// WritePicture draws how a measured transfer went, as an SVG file of its own: throughput,
// bytes in flight under the two windows, and round trips, of the sender's first
// connection.
func WritePicture(w io.Writer, r *transfer.Result, v limiter.Verdict) error {
	sender := r.Sender()
	if sender == nil || len(sender.Streams) == 0 || len(sender.Streams[0].Samples) < 3 {
		return ErrNothingToDraw
	}
	charts := pictureOf(&sender.Streams[0])
	height := pictureTop
	for i := range charts {
		height += charts[i].height
	}
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img"><style>%s</style><rect class="paper" width="100%%" height="100%%"/>`,
		chartWidth, height, pictureStyle)
	fmt.Fprintf(w, `<text class="headline" x="%g" y="20">%s</text>`, plotLeft, template.HTMLEscapeString(pictureTitle(r, v)))
	y := pictureTop
	for i := range charts {
		io.WriteString(w, string(charts[i].at(y)))
		legend(w, &charts[i], y)
		y += charts[i].height
	}
	_, err := io.WriteString(w, "</svg>\n")
	return err
}

const (
	pictureTop = 30.0
	headroom   = 0.25
)

func pictureTitle(r *transfer.Result, v limiter.Verdict) string {
	title := string(v.Limiter)
	if v.Subtype != "" {
		title += ", " + v.Subtype
	}
	if got, ok := r.Received(); ok {
		title += ": " + units.Rate(got.Bps()).String()
	}
	return title + " (" + string(v.Confidence) + " confidence)"
}

// pictureOf turns a connection's samples into charts of one time axis.
func pictureOf(s *transfer.Stream) []chart {
	samples := s.Samples
	from, to := s.First, samples[len(samples)-1].At
	var rate, flying, window, congestion, trips []flow.Point
	var again []flow.Mark
	step := max((to-from)/150, 2*samples[len(samples)-1].MinRTT, 20*time.Millisecond)
	last, before := samples[0], samples[0]
	for _, now := range samples {
		at := int64(now.At - from)
		if now.Retransmitted > before.Retransmitted {
			again = append(again, flow.Mark{At: at, From: 0, To: max(now.InFlight, 1)})
		}
		before = now
		if now.At < from {
			last = now
			continue
		}
		flying = append(flying, flow.Point{At: at, Value: now.InFlight})
		window = append(window, flow.Point{At: at, Value: now.SendWnd})
		congestion = append(congestion, flow.Point{At: at, Value: now.Cwnd})
		trips = append(trips, flow.Point{At: at, Value: int64(now.RTT)})
		if span := now.At - last.At; span >= step {
			rate = append(rate, flow.Point{At: at, Value: (now.Acked - last.Acked) * 8 * int64(time.Second) / int64(span)})
			last = now
		}
	}
	end := int64(to - from)
	mostFlying := most(flying)
	return []chart{
		{title: "throughput", unit: "bps", per: 1, to: end, height: 130, headroom: headroom, lines: []chartLine{{name: "acknowledged", class: "data", points: rate}}},
		{title: "in flight", unit: "bytes", per: 1, to: end, height: 190, headroom: headroom,
			lines: []chartLine{
				{name: "receiver's window", class: "edge", points: window, step: true, rides: most(window) > 3*mostFlying},
				{name: "congestion window", class: "acks", points: congestion, step: true, rides: most(congestion) > 3*mostFlying},
				{name: "in flight", class: "data", points: flying, step: true}},
			marks: []chartMarks{{"sent again", "retransmissions", again}}},
		{title: "round trip", unit: "s", per: 1e-9, to: end, height: 130, headroom: headroom, lines: []chartLine{{name: "smoothed", class: "data", points: trips}}},
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
		fmt.Fprintf(w, `<text x="%.0f" y="%.0f">%s</text>`, x, y+plotTop+14, template.HTMLEscapeString(keys[i].name))
		fmt.Fprintf(w, `<g class="plot"><path class="%s" d="M%.0f %.0fh22"/></g>`, keys[i].class, x-28, y+plotTop+10)
		x -= 46
	}
}
