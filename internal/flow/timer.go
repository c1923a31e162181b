package flow

import "github.com/fullpipe-net/fullpipe/internal/verdict/threshold"

// minDelayedAck is the least time of a delayed-ACK timer, nanoseconds: Linux waits for at least 40 ms, Windows and
// BSD for up to 200 ms. RFC 9293 section 3.8.6.3 allows 500 ms.
const minDelayedAck = int64(threshold.DelayedAckLeast)

// delayed finds for how long the receiver's timer delayed an acknowledgement of new data.
func (d *Direction) delayed(e *ackEvent) {
	if e.pure && e.ack >= d.high {
		e.timer = d.timerDelay(e.ack, e.seen)
	}
	if e.timer > 0 {
		d.burstAt = 0
		d.block.timed = true
	}
	d.prompt = 0
	if e.seen-d.lastSent < d.RTTMin-d.rtt.loopMin+minDelayedAck {
		d.prompt = e.seen
	}
}

// timerDelay returns for how long the receiver's delayed-ACK timer delayed an acknowledgement of all
// that is outstanding, 0 if it did not. The acknowledgements before it in the same block show how
// fast the path delivers: a slow line takes as long for each segment, a timer only for the last.
func (d *Direction) timerDelay(ack, at int64) int64 {
	if d.recovering || d.RTTMin <= 0 {
		return 0
	}
	part := d.RTTMin - d.rtt.loopMin
	waited := at - d.lastSent - part
	switch before := d.acked - d.block.from; {
	case before > 0:
		delivering := max(d.owed-d.block.began-part, 0)
		paced := int64(float64(delivering) * float64(ack-d.acked) / float64(before))
		waited = min(waited, at-d.owed-paced)
	case d.MaxOut <= int64(d.MSS): // a packet without payload crossed the path past the tap in part
		waited -= part * d.lastLen / threshold.HeaderBytes
	case !d.promptBefore():
		return 0
	}
	if waited < minDelayedAck {
		return 0
	}
	return waited
}

// promptBefore reports whether the receiver, not the path, delays the acknowledgement of a block that has no other. The
// tap is away from the sender and saw a prompt acknowledgement just before: behind a slow line, segments that were sent
// at once are acknowledged one by one.
func (d *Direction) promptBefore() bool {
	away := float64(d.rtt.loopMin) > threshold.TapAtSender*float64(d.RTTMin)
	return away && d.prompt > 0 && d.block.began-d.prompt < minDelayedAck
}

// bookTimer moves the wait for the receiver's timer to its clock.
func (d *Direction) bookTimer() {
	d.TimerWaits++
	for _, from := range []Clock{Busy, AppLimited} {
		moved := min(d.timerFor, d.cur.Clock[from])
		d.cur.Clock[from] -= moved
		d.cur.Clock[AckTimer] += moved
		d.timerFor -= moved
	}
	d.round.busy = min(d.round.busy, d.cur.Clock[Busy])
}
