package diagnose

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict/timeline"
)

// Neighbours are all directions of the sender or of the receiver, each once.
func TestNeighbours(t *testing.T) {
	direction := func(from, to uint32, port uint16) *flow.Direction {
		return &flow.Direction{From: flow.Endpoint4(from, port), To: flow.Endpoint4(to, 443)}
	}
	d := direction(1, 2, 1000)
	parallel := map[hosts][]timeline.Parallel{}
	for _, one := range []*flow.Direction{d, direction(1, 2, 1001), direction(1, 3, 1002), direction(4, 2, 1003),
		direction(4, 3, 1004), direction(2, 1, 1005)} {
		note(parallel, timeline.Parallel{Direction: one})
	}
	seen := map[uint16]int{}
	for _, o := range neighbours(d, parallel) {
		seen[o.Direction.From.Port]++
	}
	for port := range uint16(6) {
		want := 1
		if port > 3 {
			want = 0
		}
		if seen[1000+port] != want {
			t.Errorf("direction %d: %d times, want %d", port, seen[1000+port], want)
		}
	}
}
