package link

// medium is the line of one lane, or of both lanes in half duplex.
type medium struct {
	lanes []*Lane
	turn  int // the lane to serve next
	pace
}

func (m *medium) idle(now int64) bool {
	if m.free > now {
		return false
	}
	for _, l := range m.lanes {
		if l.waiting.len() > 0 {
			return false
		}
	}
	return true
}

// serve sends all packets that can start by now. Each starts when its predecessor leaves, because packets wait only
// while the medium is busy.
func (m *medium) serve(now int64) {
	for m.free <= now {
		var next *Lane
		for i := range m.lanes {
			l := m.lanes[(m.turn+i)%len(m.lanes)]
			if l.waiting.len() > 0 {
				next = l
				break
			}
		}
		if next == nil {
			return
		}
		s := next.waiting.pop()
		next.waitingBytes -= int64(next.config.carried(s))
		next.transmit(m.free, s)
	}
}
