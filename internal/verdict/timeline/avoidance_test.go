package timeline

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestJudge_CongestionAvoidanceIsNoSlowStart checks a congestion window that opens without a loss: by a segment each
// round trip from ssthresh on it is in congestion avoidance, by a segment for each acknowledgement in slow start, also
// where each acknowledgement covers many segments.
func TestJudge_CongestionAvoidanceIsNoSlowStart(t *testing.T) {
	for _, test := range []struct {
		name               string
		ssthresh, ackEvery int // segments
		want               verdict.Name
	}{
		{"from the initial window", 10, 2, verdict.Congestion},
		{"from 20 segments", 20, 1, verdict.Congestion},
		{"from 40 segments", 40, 2, verdict.Congestion},
		{"slow start with stretched acknowledgements", 1 << 20, 12, verdict.SlowStart},
	} {
		for _, rtt := range []int64{14 * ms, 80 * ms} {
			for _, loop := range []int64{0, rtt} {
				x := newTape(rtt, loop)
				cwnd, pos, at := 10, 0, 2*rtt
				for range 60 {
					acks := 0
					for k := range cwnd {
						x.data(at+int64(k)*5000, pos, 1460, 0)
						pos += 1460
						if k%test.ackEvery == test.ackEvery-1 || k == cwnd-1 {
							x.ack(at+int64(k)*5000+rtt-loop+1000, pos, 6<<20)
							acks++
						}
					}
					switch {
					case test.ackEvery > 2:
						cwnd += acks
					case cwnd < test.ssthresh:
						cwnd *= 2
					default:
						cwnd++
					}
					if cwnd > 600 {
						break
					}
					at += rtt + ms/10
				}
				g, _ := x.judge(t)
				isLow := g.Subtype == verdict.LowSsthresh && has(&g, verdict.CapturedAvoidance)
				if g.Limiter != test.want || isLow != (test.want == verdict.Congestion) {
					t.Errorf("%s, round trip %d ms, loop %d ms: %s %s (%s) %v %v", test.name, rtt/ms, loop/ms,
						g.Confidence, g.Limiter, g.Subtype, g.Shares, g.Evidence)
				}
			}
		}
	}
}
