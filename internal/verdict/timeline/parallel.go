package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Parallel is a direction of another connection of either host.
type Parallel struct {
	Connection *flow.Connection
	Direction  *flow.Direction
	pace       float64 // the path's by this direction, bytes per second
}

// betweenHostsOf reports whether the data goes between the same two hosts as d's, the same way.
func (p *Parallel) betweenHostsOf(d *flow.Direction) bool {
	return p.Direction.From.SameHost(&d.From) && p.Direction.To.SameHost(&d.To)
}

// NewParallel computes once the figures that all other directions need.
func NewParallel(c *flow.Connection, d *flow.Direction) Parallel {
	return Parallel{c, d, d.Bursts.Quantile(threshold.PathPace.Value)}
}

// share finds how many times a direction's own goodput all directions together had while it
// lasted, 1 when it was alone.
//
// Directions of one host with others share a link if their data comes at one pace, and all together not faster.
func (t *timeline) share(others []Parallel) {
	t.parallelFactor = 1
	if t.goodput <= 0 {
		return
	}
	from := t.c.Started + t.d.First
	to := t.c.Started + t.d.Last
	elsewhere := 0.0
	pace := t.pathPace
	for _, o := range others {
		if o.Direction == t.d || o.Direction.Last <= o.Direction.First {
			continue
		}
		a := o.Connection.Started + o.Direction.First
		b := o.Connection.Started + o.Direction.Last
		both := float64(min(b, to) - max(a, from))
		if both <= 0 {
			continue
		}
		factor := float64(o.Direction.Bytes) * both / float64(b-a) / float64(t.d.Bytes)
		if o.betweenHostsOf(t.d) {
			t.parallelFactor += factor
			t.pathPace = max(t.pathPace, o.pace)
		} else if max(pace, o.pace) < threshold.FilledWithin.Value*min(pace, o.pace) {
			elsewhere += factor
		}
	}
	if together := t.parallelFactor + elsewhere; together*t.goodput < threshold.FilledWithin.Value*t.pathPace {
		t.parallelFactor = together
	}
}
