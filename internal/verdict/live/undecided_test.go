package live

import (
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// closing returns a transfer seen by its sender alone, with the peer's window closed in the given number of each 20
// samples. In between it sends at twice the mean rate with a full congestion window and some loss.
func closing(shut int, rate float64) *transfer.Result {
	acked, limited := 0.0, time.Duration(0)
	r := steady(rate, 20*ms, func(i int, s, _ *transfer.Sample) {
		open := i%20 >= shut
		if open {
			acked += rate * (1 + 0.4*float64(i%3)) / 8 * 0.05
		} else {
			limited += 50 * ms
			s.SendWnd, s.InFlight = 0, 0
		}
		s.Acked, s.Sent, s.RwndLimited = int64(acked), int64(acked)+s.InFlight, limited
		s.Retransmitted, s.RetransmittedBytes = int64(i/10), int64(i/10)*1448
		s.Have &^= transfer.HaveProgram
	})
	r.Far = nil
	return r
}

// TestJudge_BetweenWindowClosings checks that a window that closes repeatedly leaves the slow reader a candidate.
func TestJudge_BetweenWindowClosings(t *testing.T) {
	for shut, want := range map[int]verdict.Name{5: verdict.Unknown, 9: verdict.Mixed} {
		v := Judge(closing(shut, 10e6))
		reported := slices.ContainsFunc(v.Evidence,
			func(e verdict.Evidence) bool { return e.Code == verdict.BetweenClosings })
		if v.Limiter != want || v.Confidence != verdict.Low || !reported || !slices.Equal(v.Candidates,
			[]verdict.Name{verdict.ReceiverApplication, verdict.Congestion}) {
			t.Errorf("%d of 20: %s, %s of %v: %v", shut, v.Limiter, v.Confidence, v.Candidates, v.Evidence)
		}
	}
	if v := Judge(closing(1, 10e6)); v.Limiter != verdict.Congestion {
		t.Errorf("hardly ever shut: %s, %v", v.Limiter, v.Evidence)
	}
	if v := Judge(closing(16, 10e6)); v.Limiter != verdict.ReceiverApplication {
		t.Errorf("nearly always shut: %s, %v", v.Limiter, v.Evidence)
	}
}

// Behind a reader that has stopped, round trips of probes are no queue of a full link.
func TestAReaderThatHasStopped(t *testing.T) {
	r := steady(1e6, 20*ms, func(_ int, s, _ *transfer.Sample) {
		s.Acked, s.Sent, s.SendWnd, s.InFlight, s.DeliveryBps, s.RwndLimited = 0, 0, 0, 0, 0, s.At
		s.RTT = 60 * ms
		s.Have &^= transfer.HaveProgram
	})
	r.Far = nil
	v := Judge(r)
	if v.Limiter != verdict.ReceiverWindow && v.Limiter != verdict.ReceiverApplication {
		t.Errorf("%s of %v: %v", v.Limiter, v.Candidates, v.Evidence)
	}
}
