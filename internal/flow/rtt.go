package flow

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// rttState measures round trips: from data to its acknowledgement at the tap, and the
// loop from the tap through the sender, which makes the rest.
type rttState struct {
	loop      *loop
	delayed   *oneWay // the data's
	back      *oneWay // the acknowledgements'
	now       int64   // the loop through the sender, at present
	next      int64   // the position of the first mark
	last      int64   // the time of the last one
	spacing   int64
	least     leastRTT
	head, n   uint8
	loopKnown bool
	loopMin   int64
	newest    int64 // the last round trip
	guess     int64 // of the loop, from the handshake
	marks     [16]mark
}

// mark is the time at which the byte at a position passed the tap.
type mark struct{ pos, at, len int64 }

const never = math.MaxInt64

// coarse is the minimum round trip in nanoseconds. If a clock shows less, it did not tick.
const coarse = 1000

// mark stores the time at which a new byte passed, once per spacing. If marks is full, it replaces the newest mark:
// an acknowledgement of many segments measures the last one.
func (r *rttState) mark(pos, at, length int64) {
	if r.n > 0 && at-r.last < r.spacing {
		return
	}
	if int(r.n) == len(r.marks) {
		r.n--
	}
	if r.n == 0 {
		r.next = pos
	}
	r.last = at
	r.marks[(r.head+r.n)%16] = mark{pos, at, length}
	r.n++
}

// spoil: the data outstanding was sent twice; its acknowledgements time nothing (Karn).
func (r *rttState) spoil() {
	r.head = 0
	r.n = 0
	r.next = never
}

// sample takes the round trips that an acknowledgement completes.
func (r *rttState) sample(d *Direction, ack, at int64) {
	for r.next <= ack {
		m := r.marks[r.head%16]
		r.head = (r.head + 1) % 16
		r.n = r.n - 1
		if r.n > 0 {
			r.next = r.marks[r.head].pos
		} else {
			r.next = never
		}
		if m.len > d.MaxPassed {
			d.MaxPassed = m.len
		}
		if r.next <= ack {
			continue // a later one shows more of the path, less of delayed ACKs
		}
		d.conn.answered(1-d.me, max(at-m.at, 1))
		r.refresh(d.RTTMin)
		if !r.loopKnown && d.conn.hasTimestamps {
			continue // the tap's own part of the round trip is soon known
		}
		part := at - m.at
		whole := part + r.now
		if whole < coarse {
			continue
		}
		r.newest = whole
		d.RTTs++
		d.PastSum += part
		if part < d.PastMin || d.PastMin == 0 {
			d.PastMin = part
		}
		d.RTTMin = r.least.add(whole, at)
		d.RTTMax = max(d.RTTMax, whole)
		d.cur.rtt(whole)
		d.round.rtt(whole)
		if excess, known := r.back.excess(); known {
			const drift = 10_000 // clocks differ by less than one part in this many
			d.cur.BackSum += max(excess-(at-r.back.began)/drift, 0)
			d.cur.Backs++
		}
		r.spacing = whole / 16
		if d.Graph != nil {
			d.Graph.RTT.add(at, whole)
		}
	}
}

// refresh takes over what the loop through the sender measures.
func (r *rttState) refresh(leastRTT int64) {
	if least := r.loop.least(); least > 0 {
		if !r.loopKnown || r.loop.min < r.loopMin {
			r.loopMin = r.loop.min
		}
		r.loopKnown = true
		// A sender with nothing to send responds late. Its segments' own delay shows a queue without regard to that.
		r.now = least
		if excess, known := r.delayed.excess(); r.loopMin < leastRTT/20 {
			r.now = r.loopMin
		} else if known {
			r.now = min(r.loopMin+excess, least+least/2)
		}
	} else if r.guess > 0 {
		r.now = r.guess
		r.loopMin = r.guess
		r.loopKnown = true
	}
}

// delay is how long acknowledgements take from the tap to the sender and its answer back
// to the tap; 0 where that is too little to matter.
func (r *rttState) delay() int64 {
	if r.now < max(300e3, r.least.supported()/20) {
		return 0
	}
	return r.now
}

// responses are the two shortest times from data toward a side to its acknowledgement, 0 unknown.
type responses struct{ least, next int64 }

// shorter is the loop through the side where that is shorter than guess, else 0. A single
// answer that came far sooner than all others is not the side's own: middleboxes acknowledge
// what they hold up to look at.
func (a *responses) shorter(guess int64) int64 {
	least := a.least
	if 2*least < guess && (a.next == 0 || 2*least < a.next) {
		least = a.next
	}
	if least < guess {
		return least
	}
	return 0
}

// answered: a side acknowledged data so soon after it had passed the tap; the loop through
// that side is no longer.
func (c *Connection) answered(by int, took int64) {
	a := &c.responses[by]
	switch {
	case a.least == 0 || took < a.least:
		a.next = a.least
		a.least = took
	case a.next == 0 || took < a.next:
		a.next = took
	default:
		return
	}
	if d := c.sides[by].dir; d != nil {
		if least := a.shorter(d.rtt.guess); least > 0 {
			d.rtt.noLonger(least, d.echoes())
		}
	}
}

// noLonger: the loop through the sender takes no longer than that.
func (r *rttState) noLonger(took int64, measured bool) {
	if r.guess <= took || measured {
		return
	}
	r.guess = took
	r.now = took
	r.loopMin = took
	r.loopKnown = true
	r.least.handshake = 0
}

// seedRTT takes the first round trip from the handshake.
func (c *Connection) seedRTT(d *Direction, from int) {
	through := c.throughClient
	beyond := c.throughServer
	if from != c.client {
		through, beyond = beyond, through
	}
	if least := c.responses[from].shorter(through); least > 0 {
		through = least
	}
	if through > 0 {
		d.rtt.guess = through
		// The answer to the SYN-ACK may have been delayed.
		const apart = 1e6
		if from == c.client && through >= minDelayedAck && beyond >= apart && d.ScaleKnown {
			d.initial = int64(threshold.InitialSegments.Value) * int64(d.MSS)
		}
		d.rtt.now = through
		d.rtt.loopMin = through
		d.rtt.loopKnown = true
		if beyond > 0 && through+beyond >= coarse {
			d.rtt.least.handshake = through + beyond
			d.RTTMin = through + beyond
			d.RTTMax = through + beyond
			d.rtt.spacing = d.RTTMin / 16
		}
	}
}

// loop measures the time from a segment toward one end to that end's answer, by the
// timestamps option.
type loop struct {
	last, next uint32 // the timestamps marked last and first
	head, n    uint8
	have       bool
	samples    uint32
	min        int64 // of all
	this, old  int64 // of this and of the last spell
	began      int64
	marks      [8]loopMark
}

type loopMark struct {
	tsval uint32
	at    int64
}

// mark notes the first segment toward the end that carries a timestamp, unless the echoes of the last few are still
// outstanding.
func (l *loop) mark(tsval uint32, at int64) {
	if l.have && int32(tsval-l.last) <= 0 {
		return
	}
	l.have = true
	l.last = tsval
	const stale = 10 * second
	if int(l.n) == len(l.marks) {
		if at-l.marks[l.head].at < stale {
			return
		}
		l.n = 0
	}
	if l.n == 0 {
		l.next = tsval
	}
	l.marks[(l.head+l.n)%8] = loopMark{tsval, at}
	l.n++
}

// awaits reports whether a timestamp that was marked comes back, or is passed over.
func (l *loop) awaits(tsecr uint32) bool { return l.n > 0 && int32(tsecr-l.next) >= 0 }

// echo takes the first segment from the end that carries it back. It reports whether that ended a spell. A time
// longer than most is no loop.
func (l *loop) echo(tsecr uint32, at, most int64) (ended bool) {
	for l.awaits(tsecr) {
		m := l.marks[l.head]
		l.head = (l.head + 1) % 8
		l.n = l.n - 1
		l.next = l.marks[l.head].tsval
		if m.tsval != tsecr {
			continue
		}
		took := max(at-m.at, 1)
		if took > most {
			continue
		}
		if l.min == 0 || took < l.min {
			l.min = took
		}
		if l.this == 0 || took < l.this {
			l.this = took
		}
		l.samples++
		if l.samples >= 8 && at-l.began > 4*l.min {
			l.old = l.this
			l.this = 0
			l.samples = 0
			l.began = at
			ended = true
		}
	}
	return ended
}

// longestLoop returns the longest loop through me that s can show, nanoseconds. A sender with nothing outstanding, at
// the end of a message, may have waited for its program.
func (me *side) longestLoop(s *Segment) int64 {
	const program = second
	if d := me.dir; s.Payload > 0 && (d == nil || d.acked >= d.high && !d.filledSegment()) {
		return program
	}
	return never
}

// filledSegment reports whether the last segment was a full one; where no MSS was seen, that it was
// as long as IPv6 carries everywhere (RFC 8200, 5).
func (d *Direction) filledSegment() bool {
	const least = 1280 - 40 - 20 - 12
	return !d.partial(d.lastLen) && (d.lastLen >= least || d.conn.sides[1-d.me].offer.MSS > 0)
}

// least is the shortest loop of the last one or two spells, 0 unknown.
func (l *loop) least() int64 {
	switch {
	case l.this == 0:
		return l.old
	case l.old == 0:
		return l.this
	}
	return min(l.this, l.old)
}
