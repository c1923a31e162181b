package flow

// Oversized follows segments that are longer than the MSS until one of them arrives whole. A host hands such
// super-segments to its network device, which splits them. Where nothing splits them, the path loses all of them.
type Oversized struct {
	whole ranges // sent as part of a super-segment, neither repeated nor acknowledged

	Count int64 // super-segments with new data
	Bytes int64 // payload in them

	Lost      int64 // bytes of super-segments that were repeated
	Passed    bool  // a super-segment was acknowledged without a repetition
	OtherLost int64 // bytes repeated that no super-segment had carried
}

// sentOversized notes a segment with new data. Only a handshake shows the MSS.
func (d *Direction) sentOversized(from, to, at int64) {
	if to-from <= int64(d.MSS) || d.conn.sides[1-d.me].offer.MSS == 0 {
		return
	}
	if d.Oversized == nil {
		d.Oversized = &Oversized{}
	}
	d.Oversized.Count++
	d.Oversized.Bytes += to - from
	if !d.Oversized.Passed {
		d.Oversized.whole.insert(from, to, at)
	}
}

// repeatedOversized counts a repetition of data that the receiver had not acknowledged.
func (d *Direction) repeatedOversized(from, to int64) {
	if d.Oversized == nil {
		d.Oversized = &Oversized{}
	}
	o := d.Oversized
	if o.Passed {
		return
	}
	lost, _ := o.whole.remove(from, to)
	o.Lost += lost
	o.OtherLost += to - from - lost
}

// passedOversized notes an acknowledgement.
func (d *Direction) passedOversized(una int64) {
	o := d.Oversized
	if o == nil || len(o.whole) == 0 || o.whole[0].from >= una {
		return
	}
	o.Passed = true
	o.whole = nil
}

// tooLarge takes a router's message that a segment of side was.
func (c *Connection) tooLarge(s *Segment, side int) {
	c.tooBig[side]++
	if s.MSS > 0 {
		c.routerMTU[side] = int32(s.MSS)
	}
}
