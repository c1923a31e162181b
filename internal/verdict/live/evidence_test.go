package live

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestEvidence_FullLinkRate checks the rate of a link that slow start fills late, on paths of 5 to 400 ms: it is the
// mean of the time in which the link was full. Where few round trips are left, the best rate that lasted is lower.
func TestEvidence_FullLinkRate(t *testing.T) {
	const full = 46e6
	seen := 0
	for _, rtt := range []time.Duration{5 * ms, 80 * ms, 200 * ms, 400 * ms} {
		for _, fills := range []int{60, 130, 160} { // samples of 50 ms
			delivered := 0.0
			bits := func(i int) float64 { // of a sample
				if i >= fills {
					return full / 20
				}
				return full / 20 * float64(i+1) / float64(4*fills)
			}
			v := Judge(steady(full, rtt, func(i int, s, r *transfer.Sample) {
				delivered += bits(i) / 8
				s.Acked, s.Sent, s.Program = int64(delivered), int64(delivered), int64(delivered)
				r.Received, r.Program = s.Acked, s.Acked
				s.DeliveryBps = bits(i) * 20
				s.RTTVar = 0
				s.Cwnd, s.Ssthresh = int64(bits(i)*20/8*rtt.Seconds()), 1<<30
				if i >= fills {
					s.RTT = rtt * 3 / 2
					s.Cwnd = s.Cwnd * 3 / 2
				}
				s.InFlight = s.Cwnd
				s.SendWnd = 8 * s.Cwnd
			}))
			for _, e := range v.Evidence {
				rate, known := e.Values["best_bps"]
				if e.Code != verdict.FullLinkOnceOpen {
					continue
				}
				seen++
				if !known || rate < 0.95*full || rate > 1.05*full {
					t.Errorf("%s, full after %d of 200 samples: %s at %.3g bit/s, want %.3g", rtt, fills, e.Code, rate, full)
				}
			}
		}
	}
	if seen < 5 {
		t.Errorf("%d of 12 transfers with a full link", seen)
	}
}

// TestEvidence_LinkFullBeforeAReaderFellBehind checks a link that was full only until the receiver's buffer was: its
// rate is the one of that time, and the evidence does not call the closed window also full.
func TestEvidence_LinkFullBeforeAReaderFellBehind(t *testing.T) {
	r := recorded(t, "testdata/receiver-application_slow-reader_2.47-Mbits-x-11.2-ms.json.gz")
	v := Judge(&transfer.Result{Spec: r.Spec, Complete: r.Complete, Near: seen(r.Near, r.Sender()),
		Far: seen(r.Far, r.Sender())})
	found := false
	for _, e := range v.Evidence {
		switch e.Code {
		case verdict.FullLink:
			found = true
			if rate := e.Values["steady_bps"]; rate < 0.85*2.47e6 || rate > 2.47e6 {
				t.Errorf("the path delivers a steady %.3g bit/s, want nearly 2.47e6", rate)
			}
		case verdict.ReceiveWindowAlsoFull:
			t.Errorf("a window that the reader closed was also full: %v", e.Values)
		}
	}
	if v.Limiter != verdict.ReceiverApplication || !found {
		t.Errorf("%s %v: %v", v.Limiter, v.Shares, v.Evidence)
	}
}
