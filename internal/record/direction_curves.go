package record

import (
	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// DirectionCurves are the values of the sender's first connection over time: bit/s, bytes and nanoseconds over
// nanoseconds since its first byte.
type DirectionCurves struct {
	Rate, InFlight, Window, Cwnd, RTT []flow.Point
	// Probes are the RTTs of small packets on a connection of their own, where they have a time.
	Probes          []flow.Point
	Retransmissions []flow.Mark
}

// Thin reduces the curves to their stored resolution.
func (c *DirectionCurves) Thin() {
	for _, one := range c.curves("") {
		s := one.series(MostPoints)
		one.take(&s)
	}
}

func (c *DirectionCurves) curves(of string) []curve {
	return []curve{{of: of, name: "rate_bps", points: &c.Rate}, {of: of, name: "in_flight_bytes", points: &c.InFlight},
		{of: of, name: "send_window_bytes", points: &c.Window}, {of: of, name: "cwnd_bytes", points: &c.Cwnd},
		{of: of, name: "rtt", points: &c.RTT},
		{of: of, name: "probe_rtt", points: &c.Probes}, {of: of, name: "retransmissions", marks: &c.Retransmissions}}
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
