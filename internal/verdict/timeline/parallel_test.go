package timeline

import (
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Two connections of a host to two others fill a line in turn, a window of each at a time. Neither fills it alone.
func TestConnectionsToTwoHostsShareALine(t *testing.T) {
	const rtt, spacing, window = 30 * ms, 1_200_000, 40
	tapes := []*tape{newTape(rtt, 0), newTape(rtt, 0)}
	otherServer := flow.Endpoint4(0xc6336409, 443) // 198.51.100.9
	otherClient := clientEnd
	otherClient.Port++
	leaves := 100 * ms
	for round := range 60 {
		for _, x := range tapes {
			for k := range window {
				pos := (round*window + k) * 1460
				sent := 100*ms + int64(k)*10_000
				if round > 0 { // released by the acknowledgement of the same segment of the round before
					sent = leaves + int64(k+1)*spacing - 2*window*spacing + rtt
				}
				x.data(sent, pos, 1460, 0)
				x.ack(leaves+int64(k+1)*spacing+rtt-1000, pos+1460, 4<<20)
			}
			leaves += window * spacing
		}
	}
	for i := range tapes[1].all {
		s := &tapes[1].all[i]
		for _, e := range []*flow.Endpoint{&s.Src, &s.Dst} {
			if *e == serverEnd {
				*e = otherServer
			} else {
				*e = otherClient
			}
		}
	}
	table := flow.NewTable(flow.Config{})
	all := slices.Concat(tapes[0].all, tapes[1].all)
	slices.SortStableFunc(all, func(a, b flow.Segment) int { return int(max(min(a.At-b.At, 1), -1)) })
	for i := range all {
		table.Add(&all[i])
	}
	var others []Parallel
	for _, c := range table.Finish() {
		others = append(others, NewParallel(c, c.Directions()[0]))
	}
	for i, o := range others {
		alone := Judge(o.Connection, o.Direction)
		together := Judge(o.Connection, o.Direction, others...)
		if alone.Limiter == verdict.Bottleneck || together.Limiter != verdict.Bottleneck {
			t.Errorf("alone %s %v, together %s %v", alone.Limiter, alone.Shares, together.Limiter, together.Shares)
		}
		faster := others[1-i]
		faster.pace *= 2
		more := []Parallel{o, others[1-i], others[1-i]} // together faster than the pace
		for _, apart := range [][]Parallel{{o, faster}, more} {
			if g := Judge(o.Connection, o.Direction, apart...); g.Limiter != alone.Limiter {
				t.Errorf("with others of another link: %s %v", g.Limiter, g.Shares)
			}
		}
	}
}
