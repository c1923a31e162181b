package diagnose

import (
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// carrying returns connections that carried these bytes, in the order of their beginnings.
func carrying(bytes ...uint32) []*flow.Connection {
	table := flow.NewTable(flow.Config{})
	for i, n := range bytes {
		table.Add(&flow.Segment{At: int64(i), Src: flow.Endpoint4(0x0a000000+uint32(i), 1000), Dst: flow.Endpoint4(1, 1),
			Seq: 1, Flags: flow.ACK, Payload: n})
	}
	return table.Finish()
}

func TestHeaviest(t *testing.T) {
	all := carrying(5, 1, 9, 5, 7, 5)
	for _, tt := range []struct {
		most int
		want []int
	}{{6, []int{0, 1, 2, 3, 4, 5}}, {5, []int{0, 2, 3, 4, 5}}, {4, []int{0, 2, 3, 4}}, {1, []int{2}}, {0, nil}} {
		var got []int
		for _, c := range heaviest(all, tt.most) {
			got = append(got, slices.Index(all, c))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("at most %d: %v, want %v", tt.most, got, tt.want)
		}
	}
}

// TestNew_CountsLeftOutConnections counts the connections of captures with more than fit a record.
func TestNew_CountsLeftOutConnections(t *testing.T) {
	many := make([]uint32, maxJudged+2)
	for i := range many {
		many[i] = 10
	}
	for _, tt := range []struct {
		name                   string
		connections            []*flow.Connection
		dropped                int64
		listed, seen, followed int64
	}{
		{"all of few", carrying(1, 2), 0, 2, 0, 0},
		{"some were dropped", carrying(1, 2), 7, 2, 9, 2},
		{"more than fit a record", carrying(many...), 0, maxJudged, maxJudged + 2, maxJudged + 2},
		{"both", carrying(many...), 5, maxJudged, maxJudged + 7, maxJudged + 2},
	} {
		r := New(&capture.Analysis{Connections: tt.connections, Dropped: tt.dropped}, 1).Record
		if int64(len(r.Connections)) != tt.listed || r.Seen != tt.seen || r.Followed != tt.followed {
			t.Errorf("%s: %d listed, %d seen, %d followed", tt.name, len(r.Connections), r.Seen, r.Followed)
		}
	}
}
