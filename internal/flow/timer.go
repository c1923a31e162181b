package flow

import "github.com/fullpipe-net/fullpipe/internal/verdict/threshold"

// minDelayedAck is the least time of a delayed-ACK timer, nanoseconds: Linux waits for at least 40 ms, Windows and
// BSD for up to 200 ms. RFC 9293 section 3.8.6.3 allows 500 ms.
const minDelayedAck = int64(threshold.DelayedAckLeast)

// timerDelay returns for how long the receiver's delayed-ACK timer delayed an acknowledgement of all
// that is outstanding, 0 if it did not. The acknowledgements before it in the same block show how
// fast the path delivers: a slow line takes as long for each segment, a timer only for the last.
func (d *Direction) timerDelay(ack, at int64) int64 {
	part := d.RTTMin - d.rtt.loopMin
	before := d.acked - d.block.from
	if d.recovering || d.RTTMin <= 0 || before <= 0 {
		return 0
	}
	delivering := max(d.owed-d.block.began-part, 0)
	paced := int64(float64(delivering) * float64(ack-d.acked) / float64(before))
	wait := min(at-d.owed-paced, at-d.lastSent-part)
	if wait < minDelayedAck {
		return 0
	}
	return wait
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
