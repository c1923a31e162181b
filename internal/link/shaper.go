package link

import "time"

// shaper limits each flow's rate before the line (Config.FlowRate).
type shaper struct {
	flows   map[uint64]*pace
	waiting heap // by departure
}

// maxShapedFlows is the largest number of flows with a state. Above it, flows without waiting packets lose theirs,
// which does not change their rate.
const maxShapedFlows = 1 << 14

// offer queues a packet and reports whether its flow's queue had room.
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
	// Unsent bytes of the flow; the packet in transmission is not in the queue.
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
	if len(s.flows) < maxShapedFlows {
		return
	}
	for flow, p := range s.flows {
		if p.free <= now {
			delete(s.flows, flow)
		}
	}
}

// next returns when the next packet leaves, or Never.
func (s *shaper) next() int64 {
	if len(s.waiting) == 0 {
		return Never
	}
	return s.waiting[0].due
}

// shape passes to the line each packet that left its flow's shaper by now, at its own time.
func (l *Lane) shape(now int64) {
	for l.shaper.next() <= now {
		s := l.shaper.waiting.pop()
		l.medium.serve(s.due)
		if !l.admit(s.due, s) {
			l.discard(s.due, s)
		}
	}
}
