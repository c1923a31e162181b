package live

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestJudge_LossOfSmallWindows checks paths on which a fifth of the segments is retransmitted. Where a window of a few
// segments fills the line and its short queue, its own losses are as many. They are not where there is no queue, or
// where the window is large.
func TestJudge_LossOfSmallWindows(t *testing.T) {
	for _, c := range []struct {
		name    string
		bps     float64
		rtt     time.Duration // mean; a standing queue shows in half of the samples
		control string
		full    bool
	}{
		{"a queue of five packets, 48 kbit/s", 46e3, 1100 * ms, "cubic", true},
		{"a queue of five packets, 128 kbit/s", 120e3, 600 * ms, "reno", true},
		{"no queue, 48 kbit/s", 46e3, 400 * ms, "cubic", false},
		{"a large window, 10 Mbit/s", 10e6, 200 * ms, "cubic", false},
		{"BBR, which keeps its rate through loss", 120e3, 600 * ms, "bbr", false},
	} {
		lost := int64(0)
		r := steady(c.bps, 120*ms, func(i int, s, r *transfer.Sample) {
			s.MinRTT = 120 * ms
			s.RTT = c.rtt
			s.RTTVar = c.rtt / 8
			if i%2 == 0 {
				s.RTTVar = c.rtt / 2
			}
			s.InFlight = int64(c.bps / 8 * c.rtt.Seconds())
			s.Cwnd = s.InFlight
			lost = s.Acked / 5 / 1448
			s.Retransmitted, s.RetransmittedBytes = lost, lost*1448
			s.Sent = s.Acked + s.InFlight + s.RetransmittedBytes
			s.SendWnd, r.ReceiveWnd = 1<<20, 1<<20
			s.PacingBps = 0
		})
		r.Near.Streams[0].Congestion = c.control
		v := Judge(r)
		if full := v.Limiter == verdict.Bottleneck; full != c.full {
			t.Errorf("%s: %s (%s), %s: %v %v", c.name, v.Limiter, v.Subtype, v.Confidence, v.Shares, v.Evidence)
		}
	}
}
