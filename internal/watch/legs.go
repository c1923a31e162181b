package watch

import (
	"math"
	"net/netip"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/watch/legs"
)

// Leg names a direction of another connection that moves the same data through the program.
type Leg struct {
	Local, Remote netip.AddrPort
	Direction     transfer.Direction
	// Others is the number of further connections with a part of the same data.
	Others int
	// Role is what the direction that has this Leg does; "": neither is known to wait, or both do.
	Role legs.Role
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
	if f.Leg == nil || f.Leg.Role != legs.Waits {
		return leg{}, false
	}
	return v.legNamed(f.Leg)
}

// legNamed returns the direction that a Leg names.
func (v *View) legNamed(name *Leg) (leg, bool) {
	for i := range v.Connections {
		c := &v.Connections[i]
		if c.Local != name.Local || c.Remote != name.Remote {
			continue
		}
		for j := range c.Flows {
			if c.Flows[j].Direction == name.Direction {
				return leg{i, j}, true
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

// joinLegs finds the directions of connections of one program that move the same data, and which of
// them waits for the other.
func (v *View) joinLegs() {
	var received, sent []leg
	for i := range v.Connections {
		c := &v.Connections[i]
		if c.Owner.PID == 0 || c.moves == nil {
			continue
		}
		for j := range c.Flows {
			switch f := &c.Flows[j]; {
			case !f.Sampled:
			case f.Direction == transfer.Up:
				sent = append(sent, leg{i, j})
			default:
				received = append(received, leg{i, j})
			}
		}
	}
	v.pair(received, sent)
	for _, one := range slices.Concat(received, sent) {
		others := sent
		if v.flowOf(one).Direction == transfer.Up {
			others = received
		}
		v.joinParts(one, others)
	}
	for _, one := range slices.Concat(received, sent) {
		v.setRole(one)
	}
}

// pair joins legs in pairs. Of several that fit, the two that differ least belong together.
func (v *View) pair(received, sent []leg) {
	for _, in := range received {
		out, ok := v.nearest(in, sent)
		if !ok {
			continue
		}
		if back, _ := v.nearest(out, received); back == in {
			v.flowOf(in).Leg = v.named(out)
			v.flowOf(out).Leg = v.named(in)
		}
	}
}

// joinParts joins a leg with all others that have no partner, where together they move its data: a
// tunnel with several clients.
func (v *View) joinParts(whole leg, others []leg) {
	if v.flowOf(whole).Leg != nil {
		return
	}
	var parts []leg
	var series []legs.Series
	for _, part := range others {
		if v.flowOf(part).Leg == nil && v.mayPass(whole, part) {
			parts = append(parts, part)
			series = append(series, v.series(part))
		}
	}
	if len(parts) < 2 || !sameData(v.flowOf(whole), v.series(whole), legs.Sum(series)) {
		return
	}
	heaviest := parts[0] // the view's order
	v.flowOf(whole).Leg = v.named(heaviest)
	v.flowOf(whole).Leg.Others = len(parts) - 1
	for _, part := range parts {
		v.flowOf(part).Leg = v.named(whole)
		v.flowOf(part).Leg.Others = len(parts) - 1
	}
}

// sameData reports whether a leg and another series are the two sides of a program.
func sameData(of *Flow, its, other legs.Series) bool {
	if of.Direction == transfer.Up {
		its, other = other, its
	}
	_, ok := legs.SameData(its, other)
	return ok
}

// setRole sets what a joined leg does: it waits, or the other waits for it.
func (v *View) setRole(one leg) {
	f := v.flowOf(one)
	if f.Leg == nil {
		return
	}
	if other, ok := v.legNamed(f.Leg); ok {
		switch waits := v.flowOf(other).waits(); {
		case f.waits() && !waits:
			f.Leg.Role = legs.Waits
		case waits && !f.waits():
			f.Leg.Role = legs.Limits
		}
	}
}

func (v *View) named(l leg) *Leg {
	c := &v.Connections[l.connection]
	return &Leg{Local: c.Local, Remote: c.Remote, Direction: v.flowOf(l).Direction}
}

// nearest returns the candidate whose data differs least from a leg's; false: none moves the same
// data.
func (v *View) nearest(of leg, candidates []leg) (found leg, ok bool) {
	smallest := math.Inf(1)
	for _, other := range candidates {
		if !v.mayPass(of, other) {
			continue
		}
		in := v.series(of)
		out := v.series(other)
		if v.flowOf(of).Direction == transfer.Up {
			in, out = out, in
		}
		differs, fits := legs.SameData(in, out)
		if !fits {
			fits = legs.SameStops(in, out)
			differs = 1 // another's bytes are better evidence
		}
		if fits && differs < smallest {
			found = other
			smallest = differs
			ok = true
		}
	}
	return found, ok
}

// mayPass reports whether data may go from one leg to the other within a program: one process has
// both connections, or it and its parent. The two ends of one connection are no such legs.
func (v *View) mayPass(a, b leg) bool {
	one := &v.Connections[a.connection]
	other := &v.Connections[b.connection]
	return a.connection != b.connection && (one.Local != other.Remote || one.Remote != other.Local) &&
		one.Owner.shares(&other.Owner)
}

// shares reports whether two owners are one process, or a process and its parent.
func (o *Owner) shares(other *Owner) bool {
	return o.PID == other.PID || o.PID == other.Parent || o.Parent == other.PID
}

// series returns what the program has read from a connection or written to it.
func (v *View) series(l leg) (s legs.Series) {
	c := &v.Connections[l.connection]
	up := v.flowOf(l).Direction == transfer.Up
	for i := range c.window.Of {
		sample := &c.window.Of[i]
		bytes := sample.Received - c.window.Queues[i].Unread
		if up {
			bytes = sample.Acked + c.window.Queues[i].Unacked
		}
		s.At = append(s.At, sample.At)
		s.Bytes = append(s.Bytes, bytes)
	}
	return s
}
