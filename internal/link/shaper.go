package link

import "time"

// shaper holds each flow to a rate before the line (Config.FlowRate): a packet leaves it
// when its flow's rate has let its last bit through.
type shaper struct {
	flows   map[uint64]*pace
	waiting heap // by when they leave
}

// mostShaped is how many flows are told apart at once; when there are more, those that
// have nothing waiting are forgotten, which gives them no more than they would have.
const mostShaped = 1 << 14

// offer takes a packet that arrives now, and answers false where its flow's queue has no
// room for it.
func (s *shaper) offer(c *Config, now int64, flow uint64, packet segment) bool {
	p := s.flows[flow]
	if p == nil {
		if s.flows == nil {
			s.flows = map[uint64]*pace{}
		}
		s.forget(now)
		p = &pace{}
		s.flows[flow] = p
	}
	size := c.carried(packet)
	// Bytes that are not yet through; of these one packet is on its way at the flow's rate,
	// and no longer in the queue.
	waits := float64(p.free-now) / float64(time.Second) * float64(c.FlowRate) / 8
	room := float64(c.QueueBytes)
	if room == 0 {
		room = float64(c.QueuePackets) * defaultMTU
	}
	if waits > defaultMTU && waits+float64(size) > room+defaultMTU {
		return false
	}
	packet.due = p.occupy(max(now, p.free), size, c.FlowRate)
	s.waiting.push(packet)
	return true
}

func (s *shaper) forget(now int64) {
	if len(s.flows) < mostShaped {
		return
	}
	for flow, p := range s.flows {
		if p.free <= now {
			delete(s.flows, flow)
		}
	}
}

// next is when the next packet leaves, or Never.
func (s *shaper) next() int64 {
	if len(s.waiting) == 0 {
		return Never
	}
	return s.waiting[0].due
}

// shape takes to the line what has left its flow's bound by now, each at its own time.
func (l *Lane) shape(now int64) {
	for l.shaper.next() <= now {
		s := l.shaper.waiting.pop()
		l.medium.serve(s.due)
		if !l.admit(s.due, s) {
			l.discard(s.due, s)
		}
	}
}
