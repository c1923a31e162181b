package live

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestJudge_LowSsthresh checks congestion windows that grow by a segment each round trip without a loss: from a low
// ssthresh on, from where HyStart++ ended slow start, and with none.
func TestJudge_LowSsthresh(t *testing.T) {
	for _, rtt := range []time.Duration{30 * ms, 50 * ms, 90 * ms} {
		for _, c := range []struct {
			name     string
			ssthresh func(i int) int64 // segments, at a sample
			lost     int64
			isLow    bool
		}{
			{"cached ssthresh", func(int) int64 { return 8 }, 0, true},
			{"HyStart++ ended slow start", func(i int) int64 { return int64(min(i/10, 1)) * 18 }, 0, false},
			{"no ssthresh", func(int) int64 { return 0 }, 0, false},
			{"losses", func(int) int64 { return 8 }, 3, false},
		} {
			acked := int64(0)
			v := Judge(steady(10e6, rtt, func(i int, s, r *transfer.Sample) {
				window := int64(10 + i)
				acked += window * 1448
				s.Acked, s.Program, r.Received, r.Program = acked, acked, acked, acked
				s.Cwnd, s.Ssthresh, s.InFlight = window*1448, c.ssthresh(i)*1448, window*1448
				s.SendWnd, r.ReceiveWnd = 4<<20, 4<<20
				s.Retransmitted, s.RetransmittedBytes = c.lost*int64(i/8), c.lost*int64(i/8)*1448
				s.Sent = acked + s.InFlight + s.RetransmittedBytes
				s.DeliveryBps = float64(window) * 1448 * 8 / rtt.Seconds()
			}))
			if got := v.Subtype == verdict.LowSsthresh; got != c.isLow || got && v.Confidence != verdict.Medium {
				t.Errorf("%s, %v: %s (%s), %s: %v %v", c.name, rtt, v.Limiter, v.Subtype, v.Confidence, v.Shares, v.Evidence)
			}
		}
	}
}
