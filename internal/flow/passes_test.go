package flow

import (
	"slices"
	"testing"
)

// The first segments of a long transfer stay, with its shortest delay. Without timestamps they do not, since a
// retransmission would be taken for the first.
func TestPassesKeepTheOpening(t *testing.T) {
	for _, stamped := range []bool{true, false} {
		const limit, sent = 256, 100_000
		kept, names := newPasses(limit), []Name{}
		for i := range uint32(sent) {
			s := Segment{Seq: i * 1448, Payload: 1448, At: int64(i)}
			if stamped {
				s.TSVal = i/10 + 1
			}
			kept.add(&s)
			if i < limit/openingPart {
				names = append(names, s.Name())
			}
		}
		if n := len(kept.all); n < limit/4 || n >= limit {
			t.Errorf("%d of %d segments kept, want some %d", n, sent, limit)
		}
		opening := slices.EqualFunc(kept.all[:len(names)], names, func(p Pass, n Name) bool { return p.Name == n })
		if opening != stamped {
			t.Errorf("timestamps %v, all of the opening kept %v", stamped, opening)
		}
		if !slices.IsSortedFunc(kept.all, func(a, b Pass) int { return int(a.At - b.At) }) {
			t.Error("not in the order of the capture")
		}
	}
}
