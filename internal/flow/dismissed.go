package flow

import (
	"math"
	"math/bits"
)

// manyDismissed is how many dropped connections are remembered for each that is followed, in 16 bytes each.
const manyDismissed = 25

// A dropped connection is followed again once it carried backAbove bytes, and backTimes as many as the heaviest of
// those that were dropped last.
const (
	backAbove = 16 << 10
	backTimes = 4
)

// dismissed remembers dropped connections and how much they carried: their later segments are not counted as new
// connections, and push no other one out. It is a hash table with linear probing, at most half full.
type dismissed struct {
	cells []dismissedCell // as many as a power of two; nil: nothing was dropped yet
	used  int
	cut   int64 // bytes of the heaviest connection that was dropped last
}

// dismissedCell is one dropped connection.
type dismissedCell struct {
	hash  uint32 // the low half; the high one selects the cell. 0: empty
	units uint32 // of payload that it carried; back: it is followed again
}

const (
	unit = 64 // bytes
	back = math.MaxUint32
)

func unitsOf(bytes int64) uint32 { return uint32(min((bytes+unit-1)/unit, back-1)) }

// cell returns the cell of a hash, or the empty one where it would be.
func (d *dismissed) cell(hash uint64) *dismissedCell {
	at := int(hash >> (64 - bits.TrailingZeros(uint(len(d.cells)))))
	for d.cells[at].hash != 0 && d.cells[at].hash != uint32(hash)|1 {
		at = (at + 1) & (len(d.cells) - 1)
	}
	return &d.cells[at]
}

// put remembers a dropped connection, if there is room.
func (d *dismissed) put(hash uint64, bytes int64, followed int) {
	if d.cells == nil {
		d.cells = make([]dismissedCell, 2<<bits.Len(uint(manyDismissed*followed-1)))
	}
	c := d.cell(hash)
	if c.hash == 0 {
		if 2*d.used >= len(d.cells) {
			return
		}
		d.used++
		c.hash = uint32(hash) | 1
	}
	c.units = unitsOf(bytes)
}

// take adds s to the dropped connection that it belongs to. It returns false if there is none, and if s makes it worth
// following again or begins another connection between its ends.
func (d *dismissed) take(s *Segment, hash uint64) bool {
	if d.cells == nil {
		return false
	}
	c := d.cell(hash)
	if c.hash == 0 || c.units == back || c.units > 0 && s.Flags&SYN != 0 {
		return false
	}
	total := int64(c.units)*unit + int64(s.Payload)
	if total >= max(backAbove, backTimes*d.cut) {
		return false
	}
	c.units = unitsOf(total)
	return true
}

// follow notes that a connection is followed that begins with s. It returns whether that one was dropped before, and
// its payload until then.
func (d *dismissed) follow(s *Segment, hash uint64) (again bool, carried int64) {
	if d.cells == nil {
		return false, 0
	}
	c := d.cell(hash)
	if c.hash == 0 || c.units == back {
		return false, 0
	}
	carried = int64(c.units) * unit
	c.units = back
	if s.Flags&SYN != 0 {
		return false, 0
	}
	return true, carried
}
