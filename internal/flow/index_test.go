package flow

import (
	"math/rand/v2"
	"testing"
)

// The index finds what a map finds while connections come, are replaced and go.
func TestIndexIsAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var x index
	x.grow()
	byEnds := map[ends]*Connection{}
	for step := range 200_000 {
		s := Segment{Src: Endpoint4(10<<24|r.Uint32N(8), uint16(r.Uint32N(64))), Dst: Endpoint4(11<<24, uint16(r.Uint32N(4)))}
		if r.IntN(2) == 0 {
			s.Src, s.Dst = s.Dst, s.Src
		}
		e, _ := endsOf(&s)
		hash := hashOf(&s)
		got, side := x.find(&s, hash)
		if got != byEnds[e] {
			t.Fatalf("step %d: %v is found as %p, not %p", step, e, got, byEnds[e])
		}
		if got != nil && side != got.sentBy(&s) {
			t.Fatalf("step %d: sent by side %d", step, side)
		}
		switch r.IntN(3) {
		case 0:
			c := &Connection{ends: e}
			x.put(c, hash)
			byEnds[e] = c
		case 1:
			x.remove(&s, hash)
			delete(byEnds, e)
		}
		if x.used != len(byEnds) || 2*x.used > len(x.cells)+2 {
			t.Fatalf("step %d: %d of %d cells used, %d connections", step, x.used, len(x.cells), len(byEnds))
		}
	}
}

// Connections whose addresses and ports differ by the same bits do not share a hash, as they would with an XOR of both.
func TestIndexSpreadsLikeEnds(t *testing.T) {
	hashes := map[uint64]bool{}
	const all = 10_000
	for i := range uint32(all) {
		hashes[hashOf(&Segment{Src: Endpoint4(i, 7), Dst: Endpoint4(i^0xffff, 8)})] = true
	}
	if len(hashes) != all {
		t.Errorf("%d connections have %d hashes", all, len(hashes))
	}
}
