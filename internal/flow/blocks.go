package flow

// block is the data sent since nothing was outstanding, as the tap saw it.
type block struct {
	from, began    int64
	first, firstAt int64 // the position and the time of its first acknowledgement
	timed          bool  // the receiver's delayed-ACK timer ran in it
}

// Blocks are blocks of data that followed each other: each began when all data before it was acknowledged. The
// acknowledgements within a block show how fast the path delivers what is outstanding at once.
type Blocks struct {
	Count  int64 // blocks of two segments and more that an acknowledgement released
	Size   int64 // the most frequent size of these, bytes
	votes  int64 // for Size (Boyer-Moore majority vote)
	Spread int64 // data in blocks whose acknowledgements took more than twice as long as the sending, bytes

	// After the first acknowledgement of each block, nanoseconds and bytes. A segment below the MSS counts as the part of
	// a full one whose time it takes on the line.
	bytes, time int64
}

// Equal reports whether at least three quarters of the blocks have the same size.
func (b *Blocks) Equal() bool { return b.Count > 0 && 2*b.votes >= b.Count }

// Rate returns the rate of the acknowledgements within blocks, bytes/s; 0 if unknown.
func (b *Blocks) Rate() float64 {
	if b.time <= 0 {
		return 0
	}
	return float64(b.bytes) / float64(b.time) * 1e9
}

// endBlock counts the block before the one that begins now.
func (d *Direction) endBlock(now int64) {
	b := &d.Blocks
	size := d.high - d.block.from
	mss := int64(max(d.MSS, 536))
	if size <= mss || d.block.timed || d.block.firstAt == 0 {
		return
	}
	if later := d.high - d.block.first; 4*later >= mss {
		took := d.owed - d.block.firstAt
		headers := (later + mss - 1) / mss * packetHeaders
		b.bytes += (later + headers) * mss / (mss + packetHeaders)
		b.time += took
		if took > 2*(d.lastSent-d.block.began) {
			b.Spread += size
		}
	}
	if released := now-d.owed <= d.rtt.now+max(d.RTTMin/4, 1e6); d.answered || !released {
		return
	}
	b.Count++
	switch {
	case b.votes == 0:
		b.Size = size
		b.votes = 1
	case size == b.Size:
		b.votes++
	default:
		b.votes--
	}
}
