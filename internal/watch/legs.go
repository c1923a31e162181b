package watch

import (
	"net/netip"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Leg names a direction of a connection.
type Leg struct {
	Local, Remote netip.AddrPort
	Direction     transfer.Direction
}

// leg is a direction in a view: indices of its connection and of its flow.
type leg struct{ connection, flow int }

func (v *View) flowOf(l leg) *Flow { return &v.Connections[l.connection].Flows[l.flow] }

// Limiting returns the connection and the flow that limit the view's heaviest flow: its own, unless
// that one only waits for another. A received flow may wait for the requests on its connection, and
// either leg of a proxy for the other.
func (v *View) Limiting() (connection, flow int) {
	if len(v.Connections) == 0 || len(v.Connections[0].Flows) == 0 {
		return 0, 0
	}
	at := leg{}
	if next, ok := v.awaitedLeg(at); ok {
		at = next
	}
	if c := &v.Connections[at.connection]; len(c.Flows) > 1 && c.Flows[at.flow].awaitsRequests(&c.Flows[1-at.flow]) {
		at.flow = 1 - at.flow
	}
	return at.connection, at.flow
}

// awaitedLeg returns the leg for which a flow waits.
func (v *View) awaitedLeg(of leg) (leg, bool) {
	f := v.flowOf(of)
	if f.Leg == nil || !f.waits() {
		return leg{}, false
	}
	for i := range v.Connections {
		c := &v.Connections[i]
		for j := range c.Flows {
			if (Leg{c.Local, c.Remote, c.Flows[j].Direction}) == *f.Leg {
				return leg{i, j}, !c.Flows[j].waits()
			}
		}
	}
	return leg{}, false
}

// waits reports whether this host's program limits the flow: it writes or reads only as another one
// lets it.
func (f *Flow) waits() bool {
	return f.Direction == transfer.Up && f.Verdict.Limiter == verdict.Application ||
		f.Direction == transfer.Down && f.Verdict.Limiter == verdict.ReceiverApplication
}

// awaitsRequests reports whether a received flow only responds to what this end sends, and the
// requests have a limiter.
func (f *Flow) awaitsRequests(requests *Flow) bool {
	return f.Awaited && requests.Direction == transfer.Up && requests.Verdict.Limiter != verdict.Unknown &&
		(requests.Verdict.Limiter != verdict.Application || f.Verdict.Limiter == verdict.Unknown)
}

// joinLegs finds the directions of two connections of one process that move the same data: at any
// time as much was written as read. Of several that fit, the two that differ least belong together.
func (v *View) joinLegs() {
	received := map[int][]leg{} // by process
	sent := map[int][]leg{}
	for i := range v.Connections {
		c := &v.Connections[i]
		for j := range c.Flows {
			f := &c.Flows[j]
			switch {
			case c.Owner.PID == 0 || !f.Sampled:
			case f.Direction == transfer.Up:
				sent[c.Owner.PID] = append(sent[c.Owner.PID], leg{i, j})
			default:
				received[c.Owner.PID] = append(received[c.Owner.PID], leg{i, j})
			}
		}
	}
	for process, ins := range received {
		outs := sent[process]
		for _, in := range ins {
			out, ok := v.nearest(in, outs)
			if !ok {
				continue
			}
			if back, _ := v.nearest(out, ins); back == in {
				v.flowOf(in).Leg = v.named(out)
				v.flowOf(out).Leg = v.named(in)
			}
		}
	}
}

func (v *View) named(l leg) *Leg {
	c := &v.Connections[l.connection]
	return &Leg{c.Local, c.Remote, v.flowOf(l).Direction}
}

// nearest returns the candidate whose data differs least from a leg's; false: none moves the same
// data.
func (v *View) nearest(of leg, candidates []leg) (found leg, ok bool) {
	var least int64
	for _, other := range candidates {
		in := of
		out := other
		if v.flowOf(of).Direction == transfer.Up {
			in = other
			out = of
		}
		spread, fits := v.Connections[in.connection].passesTo(&v.Connections[out.connection])
		if fits && in.connection != out.connection && (!ok || spread < least) {
			found = other
			least = spread
			ok = true
		}
	}
	return found, ok
}

// passesTo reports whether the program wrote to another connection as it read from this one, and by
// how many bytes the difference varied.
func (s *Observed) passesTo(out *Observed) (spread int64, ok bool) {
	if s.moves == nil || out.moves == nil || len(s.window.Of) == 0 || len(out.window.Of) == 0 {
		return 0, false
	}
	read := func(i int) int64 { return s.window.Of[i].Received - s.window.Queues[i].Unread }
	written := func(j int) int64 { return out.window.Of[j].Acked + out.window.Queues[j].Unacked }
	apart := func(i, j int) time.Duration { return (out.window.Of[j].At - s.window.Of[i].At).Abs() }
	var buffered []int64 // in the program, but for a constant
	var first, last, j int
	for i := range s.window.Of {
		for j+1 < len(out.window.Of) && apart(i, j+1) <= apart(i, j) {
			j++
		}
		if apart(i, j) > threshold.LegApart {
			continue
		}
		if len(buffered) == 0 {
			first = i
		}
		last = i
		buffered = append(buffered, read(i)-written(j))
	}
	if len(buffered) == 0 || s.window.Of[last].At-s.window.Of[first].At < threshold.LegSpan {
		return 0, false
	}
	spread = slices.Max(buffered) - slices.Min(buffered)
	moved := read(last) - read(first)
	return spread, moved >= threshold.LegBytes &&
		spread <= max(threshold.LegBuffer, int64(threshold.LegDiffers*float64(moved)))
}
