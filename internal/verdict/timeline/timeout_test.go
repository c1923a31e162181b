package timeline

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// withTimeouts returns the tape of a transfer whose receiver sends no duplicate ACKs: the sender retransmits each lost
// segment after a timeout and begins slow start again. Losses are before a tap at the receiver. The receiver's timer
// delays the acknowledgement of an odd last segment.
func withTimeouts(rtt, loop, rto, spacing int64, rounds, losses int) *tape {
	x := newTape(rtt, loop)
	const mss = 1460
	at, pos := 2*rtt, 0
	lostBeforeTap := loop > rtt/2
	beyond := rtt - loop + ms/10
	for range losses {
		cwnd := 1
		for round := range rounds {
			lost := -1
			if round == rounds-1 {
				lost = pos + cwnd/3*mss
			}
			last := at
			for k := range cwnd {
				last = at + int64(k)*spacing
				if pos != lost || !lostBeforeTap {
					x.data(last, pos, mss, 0)
				}
				pos += mss
				if lost < 0 && k%2 == 1 {
					x.ack(last+beyond, pos, 4<<20)
				}
			}
			if lost >= 0 {
				x.ack(at+beyond+int64(cwnd/3)*spacing, lost, 4<<20)
				at = last + rto
				x.data(at, lost, mss, 0)
				x.ack(at+beyond, pos, 4<<20)
			} else if cwnd%2 == 1 {
				last += 40 * ms
				x.ack(last+beyond, pos, 4<<20)
			}
			at = max(at, last) + rtt
			cwnd *= 2
		}
	}
	return x
}

// TestJudge_TimeoutsAreNoFullLink checks that the silence before a retransmission by timeout is
// congestion at each tap, also where nothing else shows the loss.
func TestJudge_TimeoutsAreNoFullLink(t *testing.T) {
	for _, rtt := range []int64{4 * ms, 9 * ms, 25 * ms} {
		for _, loop := range []int64{0, rtt / 2, rtt} {
			for _, rto := range []int64{215 * ms, 330 * ms, 1000 * ms} {
				x := withTimeouts(rtt, loop, rto, 170_000, 6, 4)
				g, _ := x.judge(t)
				if g.Limiter != verdict.Congestion || g.Shares[verdict.Bottleneck] > 0 {
					t.Errorf("round trip %d ms, loop %d ms, timeout %d ms: %s %s %v", rtt/ms, loop/ms, rto/ms,
						g.Confidence, g.Limiter, g.Shares)
				}
			}
		}
	}
}
