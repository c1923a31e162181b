package link

import "time"

// gateway models the two VPN gateways of a path. Both process every packet of both directions at the same rate, so
// one engine that serves the directions in turn models both. It counts the hosts' packets.
type gateway struct {
	rate  int64 // bit/s, both directions together
	depth int   // waiting packets, in each direction
	lanes [2]*Lane
	turn  int // the lane to serve next
	pace

	busy bool
	now  segment // in the engine, until due
	from *Lane
}

// offer takes a packet. The gateway must have been served up to its arrival time.
func (g *gateway) offer(now int64, l *Lane, s segment) bool {
	if !g.busy {
		g.begin(max(now, g.free), l, s)
		return true
	}
	if l.sealing.len() >= g.depth {
		return false
	}
	l.sealing.push(s)
	return true
}

func (g *gateway) begin(start int64, l *Lane, s segment) {
	s.due = g.occupy(start, int(s.size), g.rate)
	g.busy = true
	g.now = s
	g.from = l
	g.turn = 1 - l.place
}

// serve passes to the line all packets that left the engine by now.
func (g *gateway) serve(now int64) {
	for g.busy && g.free <= now {
		l := g.from
		s := g.now
		g.busy = false
		for i := range g.lanes {
			if next := g.lanes[(g.turn+i)%len(g.lanes)]; next.sealing.len() > 0 {
				g.begin(g.free, next, next.sealing.pop())
				break
			}
		}
		l.medium.serve(s.due)
		if !l.admit(s.due, s) {
			l.discard(s.due, s)
		}
	}
}

// pace spaces packets at a rate.
type pace struct {
	free int64 // when the last bit has passed
	rest int64 // remainder of the division by the rate, so that no rounding error adds up
}

// occupy starts sending bytes at start and returns when the last bit has passed.
func (p *pace) occupy(start int64, bytes int, rate int64) int64 {
	if rate <= 0 {
		p.free = max(p.free, start)
		return p.free
	}
	if start > p.free {
		p.rest = 0
	}
	bits := int64(bytes)*8*int64(time.Second) + p.rest
	p.free = start + bits/rate
	p.rest = bits % rate
	return p.free
}
