package flow

import (
	"cmp"
	"slices"
)

// youngShare: the newest connections, one in so many of the bound, are not dropped yet: they have had no
// time to carry anything.
const youngShare = 8

// dropLightest makes room for new connections: of those that are followed, the half that carried the
// fewest bytes is dropped. What a dropped connection still sends is a new one's.
func (t *Table) dropLightest() {
	type weighed struct {
		bytes int64
		at    int // in t.all
	}
	old := len(t.all) - len(t.all)/youngShare
	weights := make([]weighed, old)
	for i, c := range t.all[:old] {
		weights[i] = weighed{c.bytes(), i}
	}
	slices.SortFunc(weights, func(x, y weighed) int { // of two equal ones the older one stays
		return cmp.Or(cmp.Compare(x.bytes, y.bytes), cmp.Compare(y.at, x.at))
	})
	for _, w := range weights[:min(len(t.all)/2, old)] {
		t.drop(t.all[w.at])
		t.all[w.at] = nil
	}
	t.all = slices.DeleteFunc(t.all, func(c *Connection) bool { return c == nil })
}

// drop ends following a connection. Its place in t.all is the caller's, and so is t.last, which becomes
// the connection that needed the room.
func (t *Table) drop(c *Connection) {
	t.Dropped++
	if t.byEnds[c.ends] == c { // not a later one between the same ends
		delete(t.byEnds, c.ends)
	}
	s := Segment{Src: c.a, Dst: c.b}
	set := t.recently(s.hash())
	for i := range set {
		if set[i] == c {
			set[i] = nil
		}
	}
	for i := range c.sides {
		if d := c.sides[i].dir; d != nil {
			t.slices -= len(d.Slices)
			t.spareDirections = append(t.spareDirections, d)
		}
	}
	t.spare = append(t.spare, c)
}

// reused returns the memory of one that was dropped, or new memory. Without it the collector would let
// the heap grow to twice what is followed.
func reused[T any](spare *[]*T) *T {
	n := len(*spare) - 1
	if n < 0 {
		return new(T)
	}
	one := (*spare)[n]
	*spare = (*spare)[:n]
	return one
}

// bytes is how much payload both ends have sent until now, without repetitions.
func (c *Connection) bytes() (sum int64) {
	for i := range c.sides {
		if d := c.sides[i].dir; d != nil {
			sum += d.high
		}
	}
	return sum
}
