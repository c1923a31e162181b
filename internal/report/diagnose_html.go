package report

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

//go:embed page/diagnose.html
var diagnosePage string

// baseStyle is what all pages share: colours of both schemes, text, tables and limiters.
//
//go:embed page/base.css
var baseStyle string

//go:embed page/diagnose.css
var diagnoseStyle string

//go:embed page/diagnose.js
var diagnoseScript string

// WriteHTML writes one page that needs nothing else: the table, and the graphs of every
// connection whose points were kept. The pictures stand without scripts; with them they
// can be zoomed and read.
func (r *Diagnose) WriteHTML(w io.Writer) error {
	page, err := template.New("diagnose").Funcs(template.FuncMap{
		"size": func(n int64) string { return units.Size(n).String() }, "rate": rateText, "seconds": secondsText,
		"shares": SharesText, "count": thousands,
	}).Parse(diagnosePage)
	if err != nil {
		return err
	}
	return page.Execute(w, map[string]any{
		"Doc": r, "Style": template.CSS(baseStyle + diagnoseStyle), "Script": template.JS(diagnoseScript), "Limiters": limiter.Names(),
	})
}

// Graphs says how a second reading keeps the points of the first top connections.
func (r *Diagnose) Graphs(top int) flow.Config {
	const points, lines = 400_000, 6
	chosen := map[[2]flow.Endpoint]bool{}
	for _, c := range r.Connections[:min(top, len(r.Connections))] {
		a, b := c.flow.Client(), c.flow.Server()
		chosen[[2]flow.Endpoint{a, b}], chosen[[2]flow.Endpoint{b, a}] = true, true
	}
	return flow.Config{Points: min(max(points/lines/max(len(chosen), 1), 1000), 1<<16),
		Wanted: func(a, b flow.Endpoint) bool { return chosen[[2]flow.Endpoint{a, b}] }}
}

// Draw takes the points of that second reading over.
func (r *Diagnose) Draw(a *capture.Analysis) {
	for i := range r.Connections {
		c := &r.Connections[i]
		for _, again := range a.Connections {
			if again.Client() != c.flow.Client() || again.Server() != c.flow.Server() || again.Started != c.flow.Started {
				continue
			}
			for j := range c.Directions {
				for _, d := range again.Directions() {
					if d.From == c.Directions[j].flow.From {
						c.Directions[j].flow = d
					}
				}
			}
		}
	}
}

func rateText(bps *float64) string {
	if bps == nil {
		return "–"
	}
	return units.Rate(*bps).String()
}

// RowID and the like are what the page's template asks of a connection and a direction.
func (c *CapturedConnection) RowID() string {
	return c.Client + "-" + c.Server + "-" + c.StartedAt.Format("150405.000000000")
}

// To is the receiver's address and port.
func (d *CapturedDirection) To() string { return d.flow.To.AddrPort().String() }

// Limited is the limiter with its subtype and candidates.
func (d *CapturedDirection) Limited() string { return d.limiterText() }

// HandshakeText is the handshake in one line.
func (c *CapturedConnection) HandshakeText() string {
	if c.Handshake == nil {
		return "not captured"
	}
	return c.Handshake.text()
}

// Expect is the prediction in words.
func (d *CapturedDirection) Expect() string {
	if d.Prediction == nil {
		return ""
	}
	return d.Prediction.text()
}

// Remedy is what to change.
func (d *CapturedDirection) Remedy() string {
	if d.Prediction != nil {
		return d.Prediction.Fix
	}
	return limiter.Remedy(d.Verdict)
}

// Drawn says that the points for graphs were kept.
func (d *CapturedDirection) Drawn() bool { return d.flow.Graph != nil && d.flow.Last > d.flow.First }

// Charts are the direction's pictures.
func (d *CapturedDirection) Charts() []template.HTML {
	var all []template.HTML
	for _, c := range d.charts() {
		all = append(all, c.svg())
	}
	return all
}

func (d *CapturedDirection) charts() []chart {
	g, from, to, bands := d.flow.Graph, d.flow.First, d.flow.Last, d.diagnosis.Bands
	rate := chartLine{name: "rate", class: "acks", points: d.rates(), step: true}
	return []chart{
		{title: "time and sequence", unit: "bytes", per: 1, from: from, to: to, height: 320, bands: bands,
			lines: []chartLine{{name: "edge", class: "edge", points: g.Edge.Points, step: true, rides: true},
				{name: "data", class: "data", points: g.Data.Points}, {name: "acks", class: "acks", points: g.Acks.Points, step: true}},
			marks: []chartMarks{{"sacks", "sacks", g.SACKs.Marks}, {"retransmissions", "retransmissions", g.Retransmissions.Marks}}},
		{title: "outstanding and window", unit: "bytes", per: 1, from: from, to: to, height: 180, bands: bands,
			lines: []chartLine{{name: "window", class: "edge", points: g.Window.Points, step: true, rides: d.flow.WindowMax > 3*d.flow.MaxOut},
				{name: "outstanding", class: "data", points: g.Outstanding.Points, step: true}}},
		{title: "throughput", unit: "bps", per: 1, from: from, to: to, height: 140, lines: []chartLine{rate}},
		{title: "round trip", unit: "s", per: 1e-9, from: from, to: to, height: 140, lines: []chartLine{{name: "rtt", class: "data", points: g.RTT.Points}}},
	}
}

// rates is the throughput of each slice, bit/s.
func (d *CapturedDirection) rates() []flow.Point {
	var all []flow.Point
	for i := range d.flow.Slices {
		s := &d.flow.Slices[i]
		all = append(all, flow.Point{At: s.Start, Value: s.Acked * 8 * 1e9 / max(s.End-s.Start, 1)})
	}
	if n := len(all); n > 0 {
		all = append(all, flow.Point{At: d.flow.Last, Value: all[n-1].Value})
	}
	return all
}

// Points are the charts' points for the page's script: lists of differences, times in
// microseconds from the first byte.
func (d *CapturedDirection) Points() (template.JS, error) {
	doc := struct {
		Duration int64              `json:"duration"` // microseconds
		Bands    [][3]any           `json:"bands"`
		Lines    map[string][]int64 `json:"lines"`
		Marks    map[string][]int64 `json:"marks"`
	}{(d.flow.Last - d.flow.First) / 1000, [][3]any{}, map[string][]int64{}, map[string][]int64{}}
	for _, band := range d.diagnosis.Bands {
		doc.Bands = append(doc.Bands, [3]any{(int64(band.Start) - d.flow.First) / 1000, (int64(band.End) - d.flow.First) / 1000, band.Limiter})
	}
	for _, c := range d.charts() {
		for _, l := range c.lines {
			var t, v int64
			list := make([]int64, 0, 2*len(l.points))
			for _, p := range l.points {
				at := (p.At - d.flow.First) / 1000
				list = append(list, at-t, p.Value-v)
				t, v = at, p.Value
			}
			doc.Lines[l.name] = list
		}
		for _, m := range c.marks {
			var t, v int64
			list := make([]int64, 0, 3*len(m.marks))
			for _, mark := range m.marks {
				at := (mark.At - d.flow.First) / 1000
				list = append(list, at-t, mark.From-v, mark.To-mark.From)
				t, v = at, mark.From
			}
			doc.Marks[m.name] = list
		}
	}
	out, err := json.Marshal(doc)
	return template.JS(out), err
}
