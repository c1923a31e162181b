package link

// medium is the line that one lane, or both of a half duplex path, sends on.
type medium struct {
	lanes []*Lane
	turn  int // the lane to be served next, when it has something
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

// serve sends what waits and can start until now. A packet waits only while the medium
// is busy, so each starts at the very time its predecessor leaves.
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
