package timeline

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// policed returns the tape of a saw-tooth behind a policer without a queue: the bucket passes a burst, and later losses
// begin at the same bytes in flight.
func policed(rtt, loop int64, tops []int) *tape {
	x := newTape(rtt, loop)
	const mss = 1448
	pos := 0
	at := 2 * rtt
	for i, top := range tops {
		window := top / 2
		if i == 0 {
			window = 4
		}
		for ; window < top; window++ {
			if i == 0 {
				window = min(2*window, top)
			}
			for k := range window {
				sent := at + int64(k)*100_000
				x.data(sent+loop/2, pos, mss, 0)
				pos += mss
				if k%2 == 1 || k == window-1 {
					x.ack(sent+rtt-loop/2, pos, 4<<20)
				}
			}
			at += rtt
		}
		lost := 3 + top/8 // segments at once
		hole := pos
		for k := range top {
			sent := at + int64(k)*100_000
			if k >= lost || loop < rtt/2 {
				x.data(sent+loop/2, pos, mss, 0)
			}
			pos += mss
			if k >= lost {
				x.ack(sent+rtt-loop/2, hole, 4<<20)
				one := &x.all[len(x.all)-1]
				one.SACKs = 1
				one.SACK[0] = [2]uint32{1000 + uint32(hole+lost*mss), 1000 + uint32(pos)}
			}
		}
		at += rtt + 5*ms
		for k := range lost {
			x.data(at+int64(k)*100_000+loop/2, hole+k*mss, mss, 0)
		}
		x.ack(at+int64(lost)*100_000+rtt-loop/2, pos, 4<<20)
		at += rtt + int64(lost)*100_000
	}
	return x
}

// TestJudge_PolicerOfFewTeeth checks that a policer is found in a capture of a few saw-teeth, and none where losses
// begin at any bytes in flight or a queue would not be seen.
func TestJudge_PolicerOfFewTeeth(t *testing.T) {
	tests := []struct {
		name     string
		at       int64 // hundredths of the round trip between sender and tap
		tops     []int
		policers bool
	}{
		{"tap at the sender", 0, []int{120, 60, 44, 44, 44}, true},
		{"no queue seen in the middle", 40, []int{120, 60, 44, 44, 44}, false},
		{"no queue seen at the receiver", 99, []int{120, 60, 44, 44, 44}, false},
		{"losses at any window", 0, []int{40, 90, 30, 120, 20}, false},
	}
	for _, test := range tests {
		for _, rtt := range []int64{30 * ms, 70 * ms} {
			x := policed(rtt, rtt*test.at/100, test.tops)
			g, d := x.judge(t)
			if got := g.Subtype == verdict.Policer; g.Limiter != verdict.Congestion || got != test.policers {
				t.Errorf("%s, %d ms: %s %s (%s) %v, %d losses at %v", test.name, rtt/ms, g.Confidence, g.Limiter, g.Subtype,
					g.Shares, d.LossEvents, d.LossPoints)
			}
		}
	}
}
