package datagram

import "time"

// pacer says how many datagrams are due.
type pacer struct {
	perDatagram time.Duration // 0: no rate is set
	begun       time.Duration // from when on due is counted, less what was given up
	sent        int64
	burst       int64         // datagrams sent in a row once one is due; 0: as they are due
	inBurst     int64         // how many of them are still to be sent
	tick        time.Duration // when the current tick began
	left        int64         // what may still be sent in it
}

const (
	// tick is about how often a timer can wake a sender up.
	tick = time.Millisecond
	// debt is how much a sender that was held up makes up for, at twice its rate at most:
	// all at once would overflow a queue.
	debt = 100 * time.Millisecond
)

// due is how many datagrams may be sent now, and when none may, how long to wait.
func (p *pacer) due(now time.Duration, most int) (n int, wait time.Duration) {
	if p.perDatagram == 0 {
		return most, 0
	}
	p.begun = max(p.begun, now-time.Duration(p.sent)*p.perDatagram-debt)
	owed := int64((now-p.begun)/p.perDatagram) + 1 - p.sent
	if p.inBurst > 0 || p.burst > 0 && owed > 0 {
		if p.inBurst == 0 {
			p.inBurst = p.burst
		}
		n = int(min(p.inBurst, int64(most)))
		p.sent += int64(n)
		p.inBurst -= int64(n)
		return n, 0
	}
	if owed <= 0 {
		return 0, p.begun + time.Duration(p.sent)*p.perDatagram - now
	}
	if p.sent == 0 || now-p.tick >= tick {
		p.tick = now
		p.left = 2*int64(tick/p.perDatagram) + 2
	}
	if p.left == 0 {
		return 0, p.tick + tick - now
	}
	n = int(min(owed, p.left, int64(most)))
	p.sent += int64(n)
	p.left -= int64(n)
	return n, 0
}
