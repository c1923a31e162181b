package datagram

import "time"

// pacer computes how many datagrams are due.
type pacer struct {
	perDatagram time.Duration // 0: unpaced
	begun       time.Duration // reference time for due datagrams, moved forward by dropped debt
	sent        int64
	burst       int64         // datagrams in a row; 0: each when due
	inBurst     int64         // remaining datagrams of the burst
	tick        time.Duration // start of the current tick
	left        int64         // datagrams left in the tick
}

const (
	// pacerTick is about the interval at which a timer can wake a sender.
	pacerTick = time.Millisecond
	// maxCatchUp limits the debt that a delayed sender makes up for, at no more than twice its rate. More would
	// overflow a queue.
	maxCatchUp = 100 * time.Millisecond
)

// due returns how many datagrams may be sent now, or how long to wait.
func (p *pacer) due(now time.Duration, most int) (n int, wait time.Duration) {
	if p.perDatagram == 0 {
		return most, 0
	}
	p.begun = max(p.begun, now-time.Duration(p.sent)*p.perDatagram-maxCatchUp)
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
	if p.sent == 0 || now-p.tick >= pacerTick {
		p.tick = now
		p.left = 2*int64(pacerTick/p.perDatagram) + 2
	}
	if p.left == 0 {
		return 0, p.tick + pacerTick - now
	}
	n = int(min(owed, p.left, int64(most)))
	p.sent += int64(n)
	p.left -= int64(n)
	return n, 0
}
