package live

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestJudge_Marks checks congestion windows that fall by a third every second and grow by a segment each round trip
// meanwhile, for marks or for losses, and a link that stays full.
func TestJudge_Marks(t *testing.T) {
	const rtt = 50 * ms
	for _, c := range []struct {
		name          string
		marks, losses int64
		full          bool // the link never runs dry: its queue marks late
		limiter       verdict.Name
		subtype       string
	}{
		{"marks", 1, 0, false, verdict.Congestion, verdict.Marked},
		{"marks of whole windows", 40, 0, false, verdict.Congestion, verdict.Marked},
		{"losses", 0, 2, false, verdict.Congestion, ""},
		{"a loss with each mark", 1, 2, false, verdict.Congestion, ""},
		{"a full link that marks", 1, 0, true, verdict.Bottleneck, ""},
	} {
		window, acked, marked, lost := int64(60), int64(0), int64(0), int64(0)
		v := Judge(steady(10e6, rtt, func(i int, s, r *transfer.Sample) {
			window++
			if i%20 == 19 {
				window = window * 2 / 3
				marked += c.marks
				lost += c.losses
			}
			sent := window // in this round trip
			if c.full {
				sent = 40
				s.RTT = rtt * time.Duration(window) / 40
			}
			acked += sent * 1448
			s.Acked, s.Program, r.Received, r.Program = acked, acked, acked, acked
			s.Cwnd, s.Ssthresh, s.InFlight, s.SendWnd, r.ReceiveWnd = window*1448, 30*1448, window*1448, 1<<20, 1<<20
			s.Retransmitted, s.RetransmittedBytes = lost, lost*1448
			s.Sent = acked + s.InFlight + s.RetransmittedBytes
			s.DeliveredCE = marked
			s.DeliveryBps = float64(sent) * 1448 * 8 / rtt.Seconds()
		}))
		if v.Limiter != c.limiter || v.Subtype != c.subtype || v.Confidence == verdict.Low && c.subtype != "" {
			t.Errorf("%s: %s (%s), %s: %v %v", c.name, v.Limiter, v.Subtype, v.Confidence, v.Shares, v.Evidence)
		}
		for _, e := range v.Evidence {
			if e.Code == verdict.MarksBelowBest && (e.Values["marks"] < 9 || e.Values["marks"] > 10) {
				t.Errorf("%s: %v", c.name, e.Values)
			}
		}
	}
}
