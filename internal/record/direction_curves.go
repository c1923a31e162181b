package record

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// DirectionCurves are the course of the sender's first connection: nanoseconds since its
// first byte against bit/s, bytes and nanoseconds.
type DirectionCurves struct {
	Rate, InFlight, Window, Cwnd, RTT []flow.Point
	Retransmissions                   []flow.Mark
}

// newDirectionCurves thins a sender's samples to what is stored of them.
func newDirectionCurves(e *transfer.End) (c DirectionCurves) {
	if e == nil || len(e.Streams) == 0 || len(e.Streams[0].Samples) < 3 {
		return c
	}
	s := &e.Streams[0]
	samples := s.Samples
	from, to := s.First, samples[len(samples)-1].At
	step := max((to-from)/150, 2*samples[len(samples)-1].MinRTT, 20*time.Millisecond)
	last, before := samples[0], samples[0]
	for _, now := range samples {
		at := int64(now.At - from)
		if now.Retransmitted > before.Retransmitted {
			c.Retransmissions = append(c.Retransmissions, flow.Mark{At: at, From: 0, To: max(now.InFlight, 1)})
		}
		before = now
		if now.At < from {
			last = now
			continue
		}
		c.InFlight = append(c.InFlight, flow.Point{At: at, Value: now.InFlight})
		c.Window = append(c.Window, flow.Point{At: at, Value: now.SendWnd})
		c.Cwnd = append(c.Cwnd, flow.Point{At: at, Value: now.Cwnd})
		c.RTT = append(c.RTT, flow.Point{At: at, Value: int64(now.RTT)})
		if span := now.At - last.At; span >= step {
			c.Rate = append(c.Rate, flow.Point{At: at, Value: (now.Acked - last.Acked) * 8 * int64(time.Second) / int64(span)})
			last = now
		}
	}
	for _, one := range c.curves("") {
		s := one.series(MostPoints)
		one.take(&s)
	}
	return c
}

func (c *DirectionCurves) curves(of string) []curve {
	return []curve{{of: of, name: "rate_bps", points: &c.Rate}, {of: of, name: "in_flight_bytes", points: &c.InFlight},
		{of: of, name: "send_window_bytes", points: &c.Window}, {of: of, name: "cwnd_bytes", points: &c.Cwnd},
		{of: of, name: "rtt", points: &c.RTT}, {of: of, name: "retransmissions", marks: &c.Retransmissions}}
}

func (m *Measure) curves() (all []curve) {
	for i := range m.Directions {
		all = append(all, m.Directions[i].Curves.curves(place("/directions/%d", i))...)
	}
	return all
}

func (d *Tune) curves() (all []curve) {
	for i := range d.Directions {
		t := &d.Directions[i]
		all = append(all, t.Before.Curves.curves(place("/directions/%d/before", i))...)
		if t.After != nil {
			all = append(all, t.After.Curves.curves(place("/directions/%d/after", i))...)
		}
	}
	return all
}
