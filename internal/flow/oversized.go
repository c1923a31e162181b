package flow

// oversized follows segments that are longer than the MSS until one of them arrives whole. A host hands such
// super-segments to its network device, which splits them. Where nothing splits them, the path loses all of them.
type oversized struct {
	whole ranges // sent as part of a super-segment, neither repeated nor acknowledged

	OversizedLost   int64 // bytes of super-segments that were repeated
	OversizedPassed bool  // a super-segment was acknowledged without a repetition
	OtherLost       int64 // bytes repeated that no super-segment had carried
}

// sentOversized notes a segment with new data. Only a handshake shows the MSS.
func (d *Direction) sentOversized(from, to, at int64) {
	if d.OversizedPassed || to-from <= int64(d.MSS) || d.conn.sides[1-d.me].offer.MSS == 0 {
		return
	}
	d.whole.insert(from, to, at)
}

// repeatedOversized counts a repetition of data that the receiver had not acknowledged.
func (d *Direction) repeatedOversized(from, to int64) {
	if d.OversizedPassed {
		return
	}
	lost, _ := d.whole.remove(from, to)
	d.OversizedLost += lost
	d.OtherLost += to - from - lost
}

// passedOversized notes an acknowledgement.
func (d *Direction) passedOversized(una int64) {
	if len(d.whole) == 0 || d.whole[0].from >= una {
		return
	}
	d.OversizedPassed = true
	d.whole = nil
}
