package flow

// alone is what one side acknowledged of data that the tap did not see.
type alone struct {
	bytes    int64
	segments int64
	from, to int64 // when the first and the last segment acknowledged any
}

// add counts a segment of the side. The side had acknowledged up to last before, if any is true.
func (a *alone) add(s *Segment, at int64, any bool, last uint32) {
	const implausible = 1 << 26 // of one acknowledgement
	n := int64(int32(s.Ack - last))
	if !any || n <= 0 || n > implausible {
		return
	}
	if a.segments == 0 {
		a.from = at
	}
	a.segments++
	a.bytes += n
	a.to = at
}

// acknowledgedAlone returns the direction of data that is not in the capture, from its acknowledgements. It returns
// nil where there were none, or no more than for a lost segment.
func (c *Connection) acknowledgedAlone(from int) *Direction {
	a := &c.sides[1-from].alone
	const few = 3
	mss := c.mss(from)
	if a.bytes < few*int64(max(mss, 536)) {
		return nil
	}
	d := &Direction{From: c.endpoint(from), To: c.endpoint(1 - from), conn: c, me: from, First: a.from, Last: a.to,
		Bytes: a.bytes, Unseen: a.bytes, Acked: a.bytes, Acks: a.segments, Acknowledgements: a.segments, MSS: mss}
	d.Scale, d.ScaleKnown = c.scale(1 - from)
	d.NoScale = d.ScaleKnown && c.unscaled()
	return d
}
