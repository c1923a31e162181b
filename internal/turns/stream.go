package turns

import "slices"

// stream is the state of the data that one end sends. Positions are payload bytes from the first one.
type stream struct {
	begun bool
	base  uint32

	high   int64 // one past the highest byte that was seen, or that a later sequence number proves
	acked  int64 // by the other end
	edge   int64 // right edge of the other end's window
	window int64 // its last value

	holes []span // passed over: lost before the tap, or reordered

	lastAt    int64 // the last segment with payload
	lastShort bool  // it was shorter than a full one
	pushed    bool  // it ended a write
	segment   int64 // the payload of a full segment: by the system or the handshake, or the largest seen
	// segmentKnown reports that the system said it: longer ones are merged.
	segmentKnown bool

	risen     int64 // when acked rose or the window opened last, 0: not yet
	wasTight  bool  // the window had no room for a segment before
	wasShrunk bool  // and it was smaller than the widest: the reader left data unread
	widest    int64 // the largest window
	spacing   int64 // mean time between full segments that follow each other
	dupAcks   int   // duplicate acknowledgements, or acknowledgements with SACK, since acked rose
	dupAt     int64
	probed    int64 // when a window probe was sent, 0: not since the window opened
	timeouts  int   // retransmissions by timer since acked rose
	repair    repair

	missing int  // packets that never reached the tap, since the last data
	acks    acks // of the message
	loop    loop // from the tap through the other end and back
	ids     ids
	late    lateness
}

// span is a range of positions that was passed over.
type span struct{ from, to int64 }

// maxHoles bounds the holes that a stream remembers.
const maxHoles = 64

// near is the largest gap in sequence numbers that can be missing packets.
const near = 1 << 26

func (x *stream) begin(seq uint32) {
	x.begun = true
	x.base = seq
}

// restart begins anew after segments that were not followed; the path stays known.
func (x *stream) restart(seq uint32) {
	*x = stream{segment: x.segment, segmentKnown: x.segmentKnown, widest: x.widest, spacing: x.spacing, late: x.late,
		loop: loop{least: x.loop.least, excess: x.loop.excess}, ids: ids{good: x.ids.good, bad: x.ids.bad}}
	x.begin(seq)
}

// position returns the position of a sequence number, the nearest to the highest byte seen.
func (x *stream) position(seq uint32) int64 {
	return x.high + int64(int32(seq-x.base-uint32(x.high)))
}

// packets returns how many packets a payload takes; a merged segment has several.
func (x *stream) packets(payload int64) int64 {
	if payload <= x.segment || x.segment == 0 {
		return 1
	}
	return (payload + x.segment - 1) / x.segment
}

// prove notes that all up to pos was sent by now: a sequence number says so.
func (x *stream) prove(pos int64) {
	if pos <= x.high || pos-x.high > near {
		return
	}
	if len(x.holes) < maxHoles {
		x.holes = append(x.holes, span{x.high, pos})
	}
	x.high = pos
}

// fills reports whether a range was passed over, and forgets that part.
func (x *stream) fills(from, to int64) bool {
	for i := range x.holes {
		h := &x.holes[i]
		if to <= h.from || from >= h.to {
			continue
		}
		switch {
		case from > h.from && to < h.to && len(x.holes) < maxHoles:
			rest := span{to, h.to}
			h.to = from
			x.holes = append(x.holes, rest)
		case from > h.from:
			h.to = from
		case to < h.to:
			h.from = to
		default:
			x.holes = slices.Delete(x.holes, i, i+1)
		}
		return true
	}
	return false
}

// acknowledge takes an acknowledgement of the other end.
func (x *stream) acknowledge(p *Packet) {
	if !x.begun {
		return
	}
	pos := min(x.position(p.Ack), x.high)
	edge := x.position(p.Ack) + p.Window
	room := x.edge - x.high
	switch {
	case pos > x.acked:
		x.loop.acknowledged(pos, p.At)
		x.acked = pos
		x.acks.add(pos, p.At)
		x.dupAcks = 0
		x.timeouts = 0
		x.rose(p.At, room)
	case edge > x.edge && room < x.segment:
		x.rose(p.At, room)
	case pos == x.acked && x.high > x.acked && p.Payload == 0 && (p.SACK > 0 || p.Window == x.window):
		x.dupAcks++
		x.dupAt = p.At // also the last sign that data arrives
	}
	x.window = p.Window
	x.widest = max(x.widest, p.Window)
	if pos == x.acked {
		x.edge = max(x.edge, edge)
		if p.Window == 0 {
			x.edge = edge
		}
	}
}

func (x *stream) rose(at, room int64) {
	x.risen = at
	x.wasTight = room < x.segment
	x.wasShrunk = 4*x.window < 3*x.widest
}

// spaced takes the time from a full segment of a message to the next segment.
func (x *stream) spaced(d int64) {
	if x.spacing == 0 {
		x.spacing = d
	}
	x.spacing += (min(d, 2*maxSpacing*x.spacing) - x.spacing) / 8
}

// acks are the first and the last two acknowledgements of a message, or its beginning where there are fewer.
type acks struct {
	first, previous, last mark
	n                     int
}

// mark is a position and a time.
type mark struct{ pos, at int64 }

func (a *acks) begin(pos int64) { *a = acks{last: mark{pos: pos}} }

func (a *acks) add(pos, at int64) {
	a.previous = a.last
	a.last = mark{pos, at}
	a.n++
	if a.n == 1 {
		a.first = a.last
	}
}

// loop is the time from the tap through one end and back: from a segment to its acknowledgement.
type loop struct {
	least   int64 // 0: not known
	excess  int64 // mean delay above the least, each at most the least itself: jitter without timers
	probe   int64 // the position whose acknowledgement ends the sample; 0: none
	probeAt int64
}

func (l *loop) sent(to, at int64) {
	if l.probe == 0 {
		l.probe = to
		l.probeAt = at
	}
}

// spoil drops the sample that is being taken: something was retransmitted (Karn's algorithm).
func (l *loop) spoil() { l.probe = 0 }

func (l *loop) acknowledged(pos, at int64) {
	if l.probe == 0 || pos < l.probe {
		return
	}
	l.sample(at - l.probeAt)
	l.probe = 0
}

func (l *loop) sample(d int64) {
	d = max(d, 1)
	if l.least == 0 {
		l.least = d
		return
	}
	l.least = min(l.least, d)
	l.excess += (min(d-l.least, l.least) - l.excess) / 8
}

// ids counts lost packets by the IPv4 identification of systems that number the packets of each connection.
type ids struct {
	known     bool
	next      uint16
	gap       int // numbers left out before the last packet; -1: not known
	good, bad int
}

// missing takes a segment of some packets, and returns how many before it never reached the tap; 0 also where the
// identification does not count.
func (n *ids) missing(p *Packet, packets int64) (lost int) {
	n.gap = -1
	if p.Flags&IPv4 == 0 {
		return 0
	}
	gap := int(int16(p.IPID - n.next))
	if n.known {
		n.gap = max(gap, -1)
		switch {
		case gap == 0:
			n.good++
		case gap < 0 || gap > maxIDGap || p.IPID == 0:
			n.bad += idPenalty
		default:
			n.bad++
			lost = gap
		}
	}
	n.known = true
	n.next = p.IPID + uint16(packets)
	if n.good < minIDs || n.good < idsGoodPerBad*n.bad {
		return 0
	}
	return lost
}

const (
	minIDs        = 8  // before that a counter for the whole host may look the same
	idsGoodPerBad = 3  // a third lost is no path that requests are sent over
	maxIDGap      = 64 // larger ones are no losses
	idPenalty     = 16 // of an identification that goes back
)

// lateness is the delay from one end to the tap above its least, by the sender's clock in the timestamps option.
type lateness struct {
	known        bool
	first        uint32
	firstAt      int64
	tick         int64 // nanoseconds; 0: not known yet
	least        int64
	leastPending bool
}

// ticks are the timestamp clocks in use, nanoseconds.
var ticks = [...]int64{1_000, 1_000_000, 4_000_000, 10_000_000, 100_000_000}

// of returns by how much a packet came later than the fastest, and 0 where that is not known or less than two ticks.
func (l *lateness) of(p *Packet) int64 {
	if p.Flags&Timestamps == 0 {
		return 0
	}
	if !l.known {
		l.known = true
		l.first = p.TSVal
		l.firstAt = p.At
		return 0
	}
	elapsed := int64(p.TSVal - l.first)
	if l.tick == 0 && !l.findTick(elapsed, p.At-l.firstAt) {
		return 0
	}
	offset := p.At - l.firstAt - elapsed*l.tick
	if l.leastPending || offset < l.least {
		l.least = offset
		l.leastPending = false
	}
	if late := offset - l.least; late > 2*l.tick {
		return late
	}
	return 0
}

// findTick finds the clock's tick after a fifth of a second.
func (l *lateness) findTick(elapsed, passed int64) bool {
	if passed < 200_000_000 || elapsed <= 0 {
		return false
	}
	tick := passed / elapsed
	for _, known := range ticks {
		if tick > known*3/4 && tick < known*4/3 {
			l.tick = known
			l.leastPending = true
			return true
		}
	}
	return false
}
