package diagnose

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict/timeline"
)

// Graphs says how a second reading keeps the points of the first top connections.
func (r *Diagnosis) Graphs(top int) flow.Config {
	const points, lines = 400_000, 6
	chosen := map[[2]flow.Endpoint]bool{}
	for _, j := range r.from[:min(top, len(r.from))] {
		a := j.connection.Client()
		b := j.connection.Server()
		chosen[[2]flow.Endpoint{a, b}] = true
		chosen[[2]flow.Endpoint{b, a}] = true
	}
	return flow.Config{Points: min(max(points/lines/max(len(chosen), 1), 1000), 1<<16),
		Wanted: func(a, b flow.Endpoint) bool { return chosen[[2]flow.Endpoint{a, b}] }}
}

// Draw takes the points of that second reading over into the record's curves.
func (r *Diagnosis) Draw(a *capture.Analysis) {
	type key struct {
		client, server flow.Endpoint
		started        int64
	}
	again := map[key]*flow.Connection{}
	for _, c := range a.Connections {
		if slices.ContainsFunc(c.Directions(), func(d *flow.Direction) bool { return d.Graph != nil }) {
			again[key{c.Client(), c.Server(), c.Started}] = c
		}
	}
	for i, j := range r.from {
		c := again[key{j.connection.Client(), j.connection.Server(), j.connection.Started}]
		if c == nil {
			continue
		}
		for k := range j.directions {
			for _, d := range c.Directions() {
				if d.From == j.directions[k].flow.From && d.Graph != nil {
					draw(&r.Record.Connections[i].Directions[k].Curves, d, j.directions[k].diagnosis.Bands)
				}
			}
		}
	}
}

// draw takes a timeline's points over, with times from its first packet.
func draw(out *record.CapturedCurves, d *flow.Direction, bands []timeline.Band) {
	g := d.Graph
	*out = record.CapturedCurves{Data: shifted(g.Data, d.First), Acks: shifted(g.Acks, d.First),
		Edge:        shifted(g.Edge, d.First),
		Outstanding: shifted(g.Outstanding, d.First), Window: shifted(g.Window, d.First), RTT: shifted(g.RTT, d.First),
		Rate: rates(d), Retransmissions: shiftedMarks(g.Retransmissions, d.First), SACKs: shiftedMarks(g.SACKs, d.First)}
	for _, b := range bands {
		out.Bands = append(out.Bands, record.Band{StartNs: int64(b.Start) - d.First, EndNs: int64(b.End) - d.First,
			Limiter: b.Limiter})
	}
}

func shifted(l flow.Line, first int64) []flow.Point {
	out := make([]flow.Point, len(l.Points))
	for i, p := range l.Points {
		out[i] = flow.Point{At: p.At - first, Value: p.Value}
	}
	return out
}

func shiftedMarks(l flow.Marks, first int64) []flow.Mark {
	out := make([]flow.Mark, len(l.Marks))
	for i, m := range l.Marks {
		out[i] = flow.Mark{At: m.At - first, From: m.From, To: m.To}
	}
	return out
}

// rates is the throughput of each slice, bit/s.
func rates(d *flow.Direction) (all []flow.Point) {
	for i := range d.Slices {
		s := &d.Slices[i]
		all = append(all, flow.Point{At: s.Start - d.First, Value: s.Acked * 8 * 1e9 / max(s.End-s.Start, 1)})
	}
	if n := len(all); n > 0 {
		all = append(all, flow.Point{At: d.Last - d.First, Value: all[n-1].Value})
	}
	return all
}
