package flow

import (
	"math/bits"
	"math/rand/v2"
)

// index finds connections by their ends: a hash table with linear probing, at most half full, a cell for each pair of
// ends. A lookup that finds nothing or the right cell reads one cache line of it.
type index struct {
	cells []cell // as many as a power of two
	used  int
}

type cell struct {
	hash uint64
	c    *Connection // nil: empty
}

// seeds differ in each process, so that no capture can be made whose connections share a hash.
var seeds = [2]uint64{rand.Uint64(), rand.Uint64()}

// hashOf is the same for both directions.
func hashOf(s *Segment) uint64 { return s.Src.hash() + s.Dst.hash() }

func (e *Endpoint) hash() uint64 {
	high, low := bits.Mul64(e.Lo^seeds[0], (e.Hi^uint64(e.Port)<<48)^seeds[1])
	return (high ^ low) * 0x9e3779b97f4a7c15
}

// first is where the cells of a hash begin.
func (x *index) first(hash uint64) int {
	return int(hash >> (64 - bits.TrailingZeros(uint(len(x.cells)))))
}

func (x *index) next(at int) int { return (at + 1) & (len(x.cells) - 1) }

// find returns the connection between the ends of s and the side that sent s; nil if there is none.
func (x *index) find(s *Segment, hash uint64) (*Connection, int) {
	for at := x.first(hash); x.cells[at].c != nil; at = x.next(at) {
		if x.cells[at].hash != hash {
			continue
		}
		if side := x.cells[at].c.sentBy(s); side >= 0 {
			return x.cells[at].c, side
		}
	}
	return nil, 0
}

// put adds a connection, in place of another one between its ends.
func (x *index) put(c *Connection, hash uint64) {
	if 2*x.used >= len(x.cells) {
		x.grow()
	}
	at := x.first(hash)
	for x.cells[at].c != nil && (x.cells[at].hash != hash || x.cells[at].c.ends != c.ends) {
		at = x.next(at)
	}
	if x.cells[at].c == nil {
		x.used++
	}
	x.cells[at] = cell{hash, c}
}

func (x *index) grow() {
	old := x.cells
	x.cells = make([]cell, max(2*len(old), 64))
	x.used = 0
	for _, full := range old {
		if full.c != nil {
			x.put(full.c, full.hash)
		}
	}
}

// remove removes the connection between the ends of s. The cells after it move up to where they would be without it.
func (x *index) remove(s *Segment, hash uint64) {
	c, _ := x.find(s, hash)
	if c == nil {
		return
	}
	free := x.first(hash)
	for x.cells[free].c != c {
		free = x.next(free)
	}
	mask := len(x.cells) - 1
	for at := x.next(free); x.cells[at].c != nil; at = x.next(at) {
		if (at-x.first(x.cells[at].hash))&mask >= (at-free)&mask { // its first cell is not after the free one
			x.cells[free] = x.cells[at]
			free = at
		}
	}
	x.cells[free] = cell{}
	x.used--
}
