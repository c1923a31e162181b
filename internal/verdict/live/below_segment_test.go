package live

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestJudge_LessThanASegmentOutstanding checks that losses, queues and slow start of a connection that never has a
// whole segment outstanding are not taken for a congestion window or a full link. Two segments show both.
func TestJudge_LessThanASegmentOutstanding(t *testing.T) {
	for _, c := range []struct {
		name        string
		outstanding int64
		rtt         time.Duration // mean; the least is 20 ms
		lost        int64         // one in this number of requests; 0: none
		below       bool
	}{
		{"400 bytes, every tenth lost", 400, 21 * ms, 10, true},
		{"30 bytes behind a queue of others", 30, 150 * ms, 0, true},
		{"1400 bytes, every third lost behind a queue", 1400, 80 * ms, 3, true},
		{"two segments, every tenth lost", 2896, 21 * ms, 10, false},
		{"two segments behind a queue", 2896, 150 * ms, 0, false},
	} {
		w := &watchedDirection{Sends: true, Congestion: "cubic", Handshake: &transfer.Handshake{MSS: 1448}}
		for i := range int64(101) {
			at := time.Duration(i) * 50 * ms
			n := int64(at / c.rtt)
			s := transfer.Sample{At: at, RTT: c.rtt, RTTVar: c.rtt / 16, MinRTT: 20 * ms, Cwnd: 14480, SendWnd: 1 << 16,
				InFlight: c.outstanding, Queued: c.outstanding, Busy: at, Acked: n * c.outstanding,
				Sent: (n + 1) * c.outstanding, DeliveryBps: float64(c.outstanding*8) / c.rtt.Seconds(),
				Have: transfer.HaveRTT | transfer.HaveMinRTT | transfer.HaveCwnd | transfer.HaveSendWnd |
					transfer.HaveInFlight | transfer.HaveNotSent | transfer.HaveLimits | transfer.HaveAcked |
					transfer.HaveRetrans | transfer.HaveRecovery | transfer.HaveReceived | transfer.HaveRate |
					transfer.HaveQueue}
			if c.lost > 0 {
				s.Retransmitted = n / c.lost
				s.RetransmittedBytes = s.Retransmitted * c.outstanding
				s.Sent += s.RetransmittedBytes
				s.Recovering = i%3 > 0
				s.Cwnd = 1448
			}
			if !c.below {
				s.NotSent = 100_000
			}
			w.Samples = append(w.Samples, s)
		}
		v := judgeWatched(w)
		network := v.Shares[verdict.Congestion] + v.Shares[verdict.Bottleneck] + v.Shares[verdict.SlowStart]
		if c.below && (network > 0 || v.Limiter != verdict.Application && v.Limiter != verdict.Sender) ||
			!c.below && network == 0 {
			t.Errorf("%s: %s, %s: %v %v", c.name, v.Limiter, v.Confidence, v.Shares, v.Evidence)
		}
		complete(t, v)
	}
}
