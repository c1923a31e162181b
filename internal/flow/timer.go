package flow

import "github.com/fullpipe-net/fullpipe/internal/verdict/threshold"

// minDelayedAck is the least time of a delayed-ACK timer, nanoseconds: Linux waits for at least 40 ms, Windows and
// BSD for up to 200 ms. RFC 9293 section 3.8.6.3 allows 500 ms.
var minDelayedAck = int64(threshold.DelayedAckLeast.Value)

// delayed finds for how long the receiver's timer delayed an acknowledgement of new data.
func (d *Direction) delayed(e *ackEvent) {
	if e.pure && e.ack >= d.high {
		e.timer, e.basis = d.timerDelay(e.ack, e.seen)
	}
	if e.timer > 0 && e.basis != lineOrTimer {
		d.burstAt = 0
		d.block.timed = true
	}
	d.prompt = 0
	if e.seen-d.lastSent < d.RTTMin-d.rtt.loopMin+minDelayedAck {
		d.prompt = e.seen
	}
}

// timerBasis is what shows that a timer delayed an acknowledgement, and not a slow line.
type timerBasis uint8

const (
	fasterBefore timerBasis = iota // the path had just been faster
	fasterLine                     // a line this slow would have delayed the handshake, or spaced acknowledgements
	lineOrTimer                    // nothing
)

// timerDelay returns for how long the receiver's delayed-ACK timer delayed an acknowledgement of all that is
// outstanding, 0 if it did not. The acknowledgements before it in the same block show how fast the path delivers: a
// slow line takes as long for each segment, a timer only for the last.
func (d *Direction) timerDelay(ack, at int64) (waited int64, basis timerBasis) {
	if d.recovering || d.RTTMin <= 0 {
		return 0, fasterBefore
	}
	part := d.RTTMin - d.rtt.loopMin
	waited = at - d.lastSent - part
	if before := d.acked - d.block.from; before > 0 {
		delivering := max(d.owed-d.block.began-part, 0)
		paced := int64(float64(delivering) * float64(ack-d.acked) / float64(before))
		waited = min(waited, at-d.owed-paced)
	} else if !d.promptBefore() {
		basis = fasterLine
		if float64(waited) < threshold.LineMargin.Value*d.lineAtMost(ack-d.block.from, part) {
			basis = lineOrTimer
		}
	}
	if waited < minDelayedAck {
		return 0, fasterBefore
	}
	return waited, basis
}

// lineAtMost returns how long a line beyond the tap may take at most for a block that one acknowledgement covered,
// nanoseconds: in part, a SYN crossed it and its answer came back. The receiver would have acknowledged a long block in
// pairs of segments that the line had spaced.
func (d *Direction) lineAtMost(size, part int64) float64 {
	mss := int64(max(d.MSS, 536))
	segments := (size + mss - 1) / mss
	if segments >= int64(threshold.OneAckSegments.Value) {
		return 0
	}
	return float64(part) * float64(size+segments*packetHeaders) / float64(d.conn.sides[d.me].offer.length())
}

// length returns the least length of the SYN's packet, bytes.
func (o *Offer) length() int64 {
	n := int64(threshold.HeaderBytes.Value)
	if o.MSS > 0 {
		n += 4
	}
	if o.Scale > 0 {
		n += 4
	}
	if o.Timestamps {
		n += 12
	} else if o.SACK {
		n += 4
	}
	return n
}

// promptBefore reports whether the receiver, not the path, delays the acknowledgement of a block that has no other. The
// tap is away from the sender and saw a prompt acknowledgement just before: behind a slow line, segments that were sent
// at once are acknowledged one by one.
func (d *Direction) promptBefore() bool {
	away := float64(d.rtt.loopMin) > threshold.TapAtSender.Value*float64(d.RTTMin)
	return away && d.prompt > 0 && d.block.began-d.prompt < minDelayedAck
}

// serializedBefore returns for how long a line before the tap may delay the first segment that the present
// acknowledgement lets out, nanoseconds: as long as it spaced those of the block. 0 where that is not known to be short
// compared with the wait for the timer: single segments that come as far apart waited for the line.
func (d *Direction) serializedBefore() int64 {
	mss := int64(max(d.MSS, 536))
	if size := d.high - d.block.from; size > mss {
		each := (d.lastSent - d.block.began) * mss / (size - mss)
		return min(each+each/spacingParts, d.timerFor/2)
	} else if d.WindowMax < 2*mss { // no other segment was on the line
		return d.timerFor / 4
	}
	return 0
}

// bookTimer moves the wait for the receiver's timer to its clock. A wait for the timer or a slow line is only counted.
func (d *Direction) bookTimer() {
	switch d.timerBy {
	case lineOrTimer:
		d.UnclearWaits++
		d.UnclearWaited += d.timerFor
		return
	case fasterLine:
		d.LoneTimerWaits++
	}
	d.TimerWaits++
	if d.waitedIn == Full {
		d.WindowTimerWaits++
	}
	for _, from := range []Clock{d.waitedIn, Busy, AppLimited} {
		moved := min(d.timerFor, d.cur.Clock[from])
		d.cur.Clock[from] -= moved
		d.cur.Clock[AckTimer] += moved
		d.timerFor -= moved
	}
	d.round.busy = min(d.round.busy, d.cur.Clock[Busy])
}

// dropDelayed takes off what the receiver's timer added to the last acknowledgement, which
// nothing waited for (RFC 1122, 4.2.3.2).
func (d *Direction) dropDelayed() {
	for _, clock := range []Clock{Busy, AppLimited} {
		extra := min(d.lastDelay, d.cur.Clock[clock])
		d.cur.Clock[clock] -= extra
		d.cur.outTime -= float64(extra) * float64(d.lastLen)
		d.lastDelay -= extra
		d.at -= extra
	}
	d.round.busy = min(d.round.busy, d.cur.Clock[Busy])
}
