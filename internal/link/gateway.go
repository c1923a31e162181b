package link

import "time"

// gateway is a pair of VPN gateways, one at each end of the line, that encrypt and
// decrypt no faster than a budget. Either one has to do with every packet of both
// directions, acknowledgements too, and both are alike: one engine stands for them, and
// serves the directions in turn. It counts packets as the hosts send them.
type gateway struct {
	rate  int64 // bit/s, both directions together
	depth int   // packets that may wait, in each direction
	lanes [2]*Lane
	turn  int // the lane to be served next, when it has something
	pace

	busy bool
	now  segment // in the engine, until due
	from *Lane
}

// offer takes a packet that arrives at a time up to which the gateway was served.
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

// serve hands to the line what has come out of the engine until now.
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

// pace spaces what a rate lets through.
type pace struct {
	free int64 // when the last bit so far is through
	rest int64 // of a division by the rate, carried so that n packets take n times as long
}

// occupy takes so many bytes from start on and answers when they are through.
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
