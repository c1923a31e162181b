package flow

// copies recognises segments that were captured twice: on another interface, or at
// another hop.
type copies struct {
	which uint8
	ends  [4]uint64 // sequence and acknowledgement numbers of the last few segments
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
func (c *copies) has(s *Segment, at int64) bool {
	ends := uint64(s.Seq)<<32 | uint64(s.Ack)
	for i := range c.seen {
		if c.ends[i] == ends && c.seen[i].again(s, at) {
			return true
		}
	}
	return false
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

// again says that s, with the same sequence and acknowledgement numbers, is a copy of b:
// the same datagram, or, without a number of its own, one that came another way.
func (b *sighting) again(s *Segment, at int64) bool {
	const moment = 20e6
	return b.payload == s.Payload && b.tsval == s.TSVal && b.window == s.Window && b.ipid == s.IPID && b.flags == s.Flags &&
		at-b.at < moment && (s.IPID != 0 || b.iface != s.Interface || b.ttl != s.TTL)
}
