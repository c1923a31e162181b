package flow

import (
	"cmp"
	"slices"
)

// youngShare: one part in this many of the bound, the newest connections, is not dropped yet. They have had no time
// to carry anything.
const youngShare = 8

// dropLightest makes room for new connections. It drops the half of those followed that carried the fewest bytes.
// Later segments of a dropped connection are left out until it is worth following again; see dismissed.
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
	lightest := weights[:min(len(t.all)/2, old)]
	for _, w := range lightest {
		t.drop(t.all[w.at])
		t.all[w.at] = nil
	}
	t.light.cut = lightest[len(lightest)-1].bytes
	t.all = slices.DeleteFunc(t.all, func(c *Connection) bool { return c == nil })
}

// mostPoints is how many points a line all graphs keep together, some 60 MB with all their lines.
const mostPoints = 512_000

// beginGraph gives a new direction a graph. Where there are too many graphs, the half of the directions that carried
// the fewest bytes lose theirs.
func (t *Table) beginGraph(d *Direction) {
	if most := max(mostPoints/t.cfg.Points/t.cfg.Shares, 2); len(t.drawn) >= most {
		old := slices.Clone(t.drawn[:max(most-most/youngShare, 1)])
		slices.SortStableFunc(old, func(x, y *Direction) int { return cmp.Compare(x.high, y.high) })
		for _, light := range old[:min(max(most/2, 1), len(old))] {
			t.endGraph(light)
		}
		t.drawn = slices.DeleteFunc(t.drawn, func(d *Direction) bool { return d.Graph == nil })
	}
	d.Graph = reused(&t.spareGraphs).reset(t.cfg.Points)
	t.drawn = append(t.drawn, d)
}

func (t *Table) endGraph(d *Direction) {
	t.spareGraphs = append(t.spareGraphs, d.Graph)
	d.Graph = nil
}

// drop ends following a connection. Its place in t.all is the caller's, and so is t.last, which becomes
// the connection that needed the room.
func (t *Table) drop(c *Connection) {
	t.Dropped++
	s := Segment{Src: c.a, Dst: c.b}
	hash := hashOf(&s)
	t.light.put(hash, c.bytes(), t.cfg.Connections)
	if later, _ := t.byEnds.find(&s, hash); later == c {
		t.byEnds.remove(&s, hash)
	} else if later != nil && later.before == c {
		later.before = nil
	}
	for i := range c.sides {
		if d := c.sides[i].dir; d != nil {
			t.slices -= len(d.Slices)
			if d.Graph != nil {
				t.drawn = slices.DeleteFunc(t.drawn, func(o *Direction) bool { return o == d })
				t.endGraph(d)
			}
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

// bytes is how much payload both ends have sent until now, without repetitions, and before they were dropped once.
func (c *Connection) bytes() int64 {
	sum := c.carried
	for i := range c.sides {
		if d := c.sides[i].dir; d != nil {
			sum += d.high
		}
	}
	return sum
}
