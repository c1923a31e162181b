package flow

// copies recognises segments that were captured twice: on another interface, or at
// another hop.
type copies struct {
	which uint8
	ttl   uint8
	iface uint16
	wide  *wideCopies // nil until segments came by two ways
	ends  [4]uint64   // sequence and acknowledgement numbers of the last few segments
	seen  [4]sighting
}

// sighting has the fields that are equal in a copy, and some that need not be.
type sighting struct {
	payload, tsval uint32
	window, ipid   uint16
	flags          Flags
	ttl            uint8
	iface          uint16
	at             int64
}

// resembles reports whether one of the last segments had the same numbers: this one may be a
// copy of it, or else has the same data or acknowledges the same.
func (c *copies) resembles(s *Segment) bool {
	ends := uint64(s.Seq)<<32 | uint64(s.Ack)
	return ends == c.ends[0] || ends == c.ends[1] || ends == c.ends[2] || ends == c.ends[3]
}

// has reports whether the same segment was noted a moment ago.
func (c *copies) has(s *Segment, at int64, of *Connection) bool {
	ends := uint64(s.Seq)<<32 | uint64(s.Ack)
	for i := range c.seen {
		if b := &c.seen[i]; c.ends[i] == ends && b.again(s, at) && of.shownTwice(s, b, at) {
			return true
		}
	}
	return false
}

// shownTwice reports whether a segment like b is a copy and no retransmission. Copies have an IP identification, or
// came by another interface or hop. Otherwise only the time shows it: no data is retransmitted so soon, but an
// acknowledgement may be repeated.
func (c *Connection) shownTwice(s *Segment, b *sighting, at int64) bool {
	if s.IPID != 0 || b.iface != s.Interface || b.ttl != s.TTL {
		return true
	}
	short := int64(500e3)
	if rtt := c.leastRTT(); rtt > 0 {
		short = min(short, rtt/2)
	}
	if at-b.at >= short || s.Payload == 0 && !c.doubled {
		return false
	}
	c.doubled = true
	return true
}

func (c *copies) note(s *Segment, at int64) {
	i := c.which % 4
	c.which++
	c.ends[i] = uint64(s.Seq)<<32 | uint64(s.Ack)
	// One by one: a whole struct would be put together elsewhere first, and read back
	// before what was written of it can be.
	b := &c.seen[i]
	b.payload = s.Payload
	b.tsval = s.TSVal
	b.window = s.Window
	b.ipid = s.IPID
	b.flags = s.Flags
	b.ttl = s.TTL
	b.iface = s.Interface
	b.at = at
}

// again reports whether s, with the same sequence and acknowledgement numbers, looks like b.
func (b *sighting) again(s *Segment, at int64) bool {
	const moment = 20e6
	return b.payload == s.Payload && b.tsval == s.TSVal && b.window == s.Window && b.ipid == s.IPID &&
		b.flags == s.Flags &&
		at-b.at < moment
}

// wideCopies recognises copies of a second way, hop or interface, that come many segments
// later: another queue, or the time to the other hop. It keeps what was seen lately in a
// ring, which grows as long as what it would forget is younger than a copy may be.
type wideCopies struct {
	ring  []wideSighting
	heads []uint32 // by a hash of the numbers, the last sighting of them
	noted uint32   // sightings so far; the n-th is at n modulo the ring's length, the first is the 1st
}

type wideSighting struct {
	ends           uint64
	payload, tsval uint32
	at             int64
	ipid, iface    uint16
	ttl            uint8
	before         uint32 // the sighting before with the same hash; 0 none
}

// A side keeps fewWide sightings, some 20 kB, and at most manyWide: 20 ms of 5 Gbit/s.
// mostWide bounds how often all sides together keep fewWide.
const (
	fewWide  = 512
	manyWide = 8192
	mostWide = 2000
	copyMost = 20e6 // nanoseconds that a copy may come later
)

// byOtherWay reports whether s is a copy of a segment that came another way; it notes s.
func (c *Connection) byOtherWay(s *Segment, me *side, at int64) bool {
	if me.ttl == 0 && me.iface == 0 {
		me.ttl = s.TTL
		me.iface = s.Interface
	}
	bound := mostWide / c.table.cfg.Shares
	if me.wide == nil {
		if me.ttl == s.TTL && me.iface == s.Interface || c.table.wide >= bound {
			return false
		}
		me.wide = &wideCopies{}
		me.wide.resize(fewWide)
		c.table.wide++
	}
	w := me.wide
	if w.has(s, at) {
		return true
	}
	if n := len(w.ring); w.full(at) && n < manyWide && c.table.wide+n/fewWide <= bound {
		c.table.wide += n / fewWide
		w.resize(2 * n)
	}
	w.note(s, at)
	return false
}

// head is where the sightings with the same numbers as s begin.
func (w *wideCopies) head(ends uint64) *uint32 {
	return &w.heads[(ends*0x9e3779b97f4a7c15)>>32&uint64(len(w.heads)-1)]
}

func (w *wideCopies) at(n uint32) *wideSighting { return &w.ring[int(n)&(len(w.ring)-1)] }

// has reports whether s was seen by another way a moment ago.
func (w *wideCopies) has(s *Segment, at int64) bool {
	ends := uint64(s.Seq)<<32 | uint64(s.Ack)
	for n := *w.head(ends); n > 0 && w.noted-n < uint32(len(w.ring)); {
		b := w.at(n)
		if at-b.at >= copyMost {
			return false
		}
		if b.ends == ends && b.payload == s.Payload && b.tsval == s.TSVal && b.ipid == s.IPID &&
			(b.ttl != s.TTL || b.iface != s.Interface) {
			return true
		}
		n = b.before
	}
	return false
}

// full reports whether the next sighting takes the place of one that a copy may still follow.
func (w *wideCopies) full(at int64) bool {
	return int(w.noted) >= len(w.ring) && at-w.at(w.noted+1).at < copyMost
}

func (w *wideCopies) note(s *Segment, at int64) {
	w.put(&wideSighting{uint64(s.Seq)<<32 | uint64(s.Ack), s.Payload, s.TSVal, at, s.IPID, s.Interface, s.TTL, 0})
}

func (w *wideCopies) put(b *wideSighting) {
	w.noted++
	if w.noted == 0 { // it wrapped: older entries no longer follow on
		clear(w.heads)
		w.noted = 1
	}
	head := w.head(b.ends)
	b.before = *head
	*head = w.noted
	*w.at(w.noted) = *b
}

// resize makes room for n sightings, a power of two, and keeps those that there are.
func (w *wideCopies) resize(n int) {
	old := *w
	*w = wideCopies{ring: make([]wideSighting, n), heads: make([]uint32, n)}
	kept := min(old.noted, uint32(len(old.ring)))
	for i := range kept {
		w.put(old.at(old.noted - kept + 1 + i))
	}
}

// passing is what high was at two moments, some part of a round trip apart.
type passing struct{ newer, older struct{ high, at int64 } }

// soonest returns the time after a segment passed the tap in which it cannot be retransmitted: a loss shows after a
// round trip at the earliest. Round trips may be estimated too long, and copies come soon. It returns 0 where the
// clock is too coarse.
func (d *Direction) soonest() int64 {
	least := min(d.RTTMin/2, 5e6)
	if d.conn.Grain > least/2 {
		return 0
	}
	return least
}

// note keeps when data from a position on began to pass.
func (d *Direction) note(from, at int64) {
	p := &d.passing
	if at-p.newer.at >= d.soonest()/2 {
		p.older = p.newer
		p.newer = struct{ high, at int64 }{from, at}
	}
}

// justPassed reports whether data from a position on, below high, passed the tap so short a time ago
// that its sender cannot have sent it again: it was captured twice, cut in other pieces, as
// before and behind a bridge.
func (d *Direction) justPassed(from, at int64) bool {
	since := at - d.soonest()
	recent := d.passing.older.at > since && from >= d.passing.older.high ||
		d.passing.newer.at > since && from >= d.passing.newer.high
	return recent && (len(d.gaps) == 0 || from >= d.gaps[len(d.gaps)-1].to)
}
