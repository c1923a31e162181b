package live

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// slowLine is a transfer over a line that takes the given time for a segment, acknowledged one by one or in pairs, for
// n segments. Its smoothed round trip begins as the handshake's and follows the queue of two segments.
func slowLine(segment time.Duration, inPairs bool, n int) *transfer.Result {
	rtt := 60 * ms
	smoothed := rtt
	return steady(1e6, rtt, func(i int, s, r *transfer.Sample) {
		arrived := min(int(s.At/segment), n)
		if inPairs {
			arrived -= arrived % 2
		}
		if int64(arrived)*1448 > s.Acked || i == 1 {
			smoothed += (rtt + 2*segment - smoothed) / 8
		}
		s.RTT = smoothed
		s.Acked = int64(arrived) * 1448
		s.SegmentsIn = int64(arrived)
		s.InFlight = 2 * 1448
		s.Sent = s.Acked + s.InFlight
	})
}

// TestRates_SlowLine checks that no rate of a few segments exceeds the rate of the line that they came over, wherever
// the spans and rounds begin.
func TestRates_SlowLine(t *testing.T) {
	for _, segment := range []time.Duration{150 * ms, 200 * ms, 250 * ms, 400 * ms} {
		for _, inPairs := range []bool{false, true} {
			r := slowLine(segment, inPairs, 1000)
			line := 1448 * 8 / segment.Seconds()
			a := newAnalysis(r, 60*ms, scope{})
			if p := a.path; p.lastingRate > threshold.FiguresAgree.Value*line || p.lastingRate < 0.8*line {
				t.Errorf("%v, in pairs %v: %.0f bit/s lasted, the line gives %.0f", segment, inPairs, p.lastingRate, line)
			}
			for _, round := range a.connections[0].rounds {
				if round.bps > 1.1*line {
					t.Errorf("%v, in pairs %v: %.0f bit/s in a round, the line gives %.0f", segment, inPairs, round.bps, line)
				}
			}
		}
	}
}

// TestSpare_SmoothedAfter checks that the round trip of the handshake, in the first smoothed ones, does not make a full
// line look faster than it is.
func TestSpare_SmoothedAfter(t *testing.T) {
	r := slowLine(200*ms, false, 1000)
	if p := newAnalysis(r, 60*ms, scope{}).path; p.linkHeadroom >= threshold.LinkFree.Value {
		t.Errorf("the line is %.2f times as fast as what came", p.linkHeadroom)
	}
}

// TestJudgeSteady_SharesOfTime checks that no share of the time is above 1 where slow start is left out.
func TestJudgeSteady_SharesOfTime(t *testing.T) {
	r := steady(20e6, 24*ms, func(i int, s, r *transfer.Sample) {
		s.SendWnd, r.ReceiveWnd, s.Cwnd, s.RwndLimited, s.MinRTT = 60000, 60000, 130000, s.At, 5*ms
		if i < 40 {
			s.Ssthresh, s.Cwnd = 0, int64(2000*i)
			s.Acked = s.Acked * int64(i) / 40
		}
	})
	for _, e := range JudgeSteady(r).Evidence {
		for key, value := range e.Values {
			if (key == "full_ratio" || key == "time_ratio" || key == "best_ratio") && value > 1 {
				t.Errorf("%s is %v: %+v", key, value, e)
			}
		}
	}
}

// TestArrivingBy_AllAtOnce checks bytes that arrived in the moment in which the first round begins, as a coarse clock
// shows them.
func TestArrivingBy_AllAtOnce(t *testing.T) {
	c := &connection{mss: 1448, samples: make([]transfer.Sample, 3), rounds: []round{{start: &transfer.Sample{}}},
		delivered: []float64{2896, 2896, 5792}}
	c.samples[2].At = 10 * ms
	for _, at := range []time.Duration{0, 5 * ms, 10 * ms, 20 * ms} {
		if n := c.arrivingBy(at); !(n >= 0 && n <= 5792) {
			t.Errorf("%v: %v bytes", at, n)
		}
	}
}
