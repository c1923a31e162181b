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

// sighting is what must be the same in a copy, and what need not be.
type sighting struct {
	payload, tsval uint32
	window, ipid   uint16
	flags          Flags
	ttl            uint8
	iface          uint16
	at             int64
}

// resembles says that one of the last segments had the same numbers: this one may be a
// copy of it, or else has the same data or acknowledges the same.
func (c *copies) resembles(s *Segment) bool {
	ends := uint64(s.Seq)<<32 | uint64(s.Ack)
	return ends == c.ends[0] || ends == c.ends[1] || ends == c.ends[2] || ends == c.ends[3]
}

// has says that the same segment was noted a moment ago.
func (c *copies) has(s *Segment, at int64, of *Connection) bool {
	ends := uint64(s.Seq)<<32 | uint64(s.Ack)
	for i := range c.seen {
		if b := &c.seen[i]; c.ends[i] == ends && b.again(s, at) && of.shownTwice(s, b, at) {
			return true
		}
	}
	return false
}

// shownTwice says whether a segment like b is the same one seen again rather than one that was
// sent again: datagrams have a number, or came by another interface or hop; else nothing is
// sent again within so short a time, but an acknowledgement may be.
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
	b.payload, b.tsval, b.window, b.ipid = s.Payload, s.TSVal, s.Window, s.IPID
	b.flags, b.ttl, b.iface, b.at = s.Flags, s.TTL, s.Interface, at
}

// again says that s, with the same sequence and acknowledgement numbers, looks like b.
func (b *sighting) again(s *Segment, at int64) bool {
	const moment = 20e6
	return b.payload == s.Payload && b.tsval == s.TSVal && b.window == s.Window && b.ipid == s.IPID &&
		b.flags == s.Flags &&
		at-b.at < moment
}

// wideCopies recognises copies of a second way, hop or interface, that come many segments
// later: another queue, or the time to the other hop.
type wideCopies [512]wideSighting

type wideSighting struct {
	ends           uint64
	payload, tsval uint32
	at             int64
	ipid, iface    uint16
	ttl            uint8
}

// mostWide bounds how many sides keep so much, some 20 kB each.
const mostWide = 2000

// byOtherWay says that s is a copy of a segment that came another way; it notes s.
func (c *Connection) byOtherWay(s *Segment, me *side, at int64) bool {
	if me.ttl == 0 && me.iface == 0 {
		me.ttl, me.iface = s.TTL, s.Interface
	}
	if me.wide == nil {
		if me.ttl == s.TTL && me.iface == s.Interface || c.table.wide >= mostWide/c.table.cfg.Shares {
			return false
		}
		me.wide = &wideCopies{}
		c.table.wide++
	}
	const moment = 20e6
	ends := uint64(s.Seq)<<32 | uint64(s.Ack)
	b := &me.wide[(ends*0x9e3779b97f4a7c15)>>(64-9)]
	if b.ends == ends && b.payload == s.Payload && b.tsval == s.TSVal && b.ipid == s.IPID && at-b.at < moment &&
		(b.ttl != s.TTL || b.iface != s.Interface) {
		return true
	}
	*b = wideSighting{ends, s.Payload, s.TSVal, at, s.IPID, s.Interface, s.TTL}
	return false
}
