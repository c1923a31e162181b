package live

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// inBursts returns the bytes that have arrived by the i-th sample of 50 ms if all data of each round trip of 200 ms
// arrives in its first half.
func inBursts(bps float64, i int) int64 {
	cycle := bps / 8 * 0.2
	return int64(cycle * (float64(i/4) + []float64{0, 0.5, 1, 1}[i%4]))
}

// A window comes every round trip behind a queue too. Only where no queue can have made
// the round trip that long is a full window surely what limits.
func TestFullWindowBehindAQueue(t *testing.T) {
	const bps = 20e6
	behind := func(empty time.Duration, level func(i int) float64, bursts bool) *transfer.Result {
		return steady(bps, 200*ms, func(i int, s, r *transfer.Sample) {
			s.SendWnd, r.ReceiveWnd, s.Cwnd = s.InFlight, s.InFlight, 3*s.InFlight
			s.RwndLimited, s.MinRTT = s.At*97/100, empty
			if bursts {
				s.Acked, s.DeliveryBps = inBursts(bps, i), 2*bps
				s.Sent, s.Program, r.Received = s.Acked, s.Acked, s.Acked
			}
			saw := int64(bps / 8 * 0.05 * level(i))
			s.Acked, s.Sent, s.DeliveryBps = s.Acked+saw, s.Sent+saw, 2*bps
		})
	}
	flat := func(int) float64 { return 0 }
	unsteady := func(i int) float64 { return 8 * float64(min(i/20%2*(i%20), 10)) / 10 }
	for _, c := range []struct {
		name       string
		result     *transfer.Result
		limiter    verdict.Name
		confidence verdict.Confidence
		code       verdict.Code
	}{
		{"an empty path, in bursts", behind(198*ms, flat, true), verdict.ReceiverWindow, verdict.High,
			verdict.ReceiveWindowFull},
		{"a queue of as much again, in batches", behind(100*ms, flat, true), verdict.Unknown, verdict.Low,
			verdict.WindowOrLink},
		{"a queue, and the rate is unsteady", behind(145*ms, unsteady, false), verdict.ReceiverWindow, verdict.Medium,
			verdict.ReceiveWindowFull},
		{"a queue and a steady link", behind(120*ms, flat, false), verdict.Bottleneck, verdict.High, verdict.FullLink},
	} {
		v := Judge(c.result)
		complete(t, v)
		if v.Limiter != c.limiter || v.Confidence != c.confidence || v.Evidence[0].Code != c.code {
			t.Errorf("%s: %s, %s; want %s, %s\n\tshares %v\n\t%v", c.name, v.Limiter, v.Confidence, c.limiter, c.confidence,
				v.Shares, v.Evidence)
		}
		if open := []verdict.Name{verdict.ReceiverWindow, verdict.Bottleneck}; v.Limiter == verdict.Unknown &&
			!slices.Equal(v.Candidates, open) {
			t.Errorf("%s: candidates %v, want %v", c.name, v.Candidates, open)
		}
	}
}

// TestJudge_WindowEqualsBDP checks the verdict on a full window with data that arrives without a gap. A larger
// window would find no gap to fill, and without a queue a faster link would gain nothing. Pacing spreads data over
// gaps, and several connections fill each other's gaps.
func TestJudge_WindowEqualsBDP(t *testing.T) {
	for _, c := range []struct {
		name       string
		congestion string
		streams    int
		limiter    verdict.Name
		confidence verdict.Confidence
	}{
		{"no gap", "cubic", 1, verdict.Unknown, verdict.Low},
		{"no gap, of two connections", "cubic", 2, verdict.ReceiverWindow, verdict.Medium},
		{"no gap to be seen", "bbr", 1, verdict.ReceiverWindow, verdict.Medium},
	} {
		r := steady(20e6, 204*ms, func(i int, s, r *transfer.Sample) {
			s.SendWnd, r.ReceiveWnd, s.Cwnd = s.InFlight, s.InFlight, 3*s.InFlight
			s.RwndLimited, s.MinRTT, s.PacingBps = s.At, 200*ms, 20e6
		})
		r.Near.Streams[0].Congestion = c.congestion
		for len(r.Near.Streams) < c.streams {
			r.Near.Streams, r.Far.Streams = append(r.Near.Streams, r.Near.Streams[0]), append(r.Far.Streams, r.Far.Streams[0])
		}
		v := Judge(r)
		complete(t, v)
		if v.Limiter != c.limiter || v.Confidence != c.confidence {
			t.Errorf("%s: %s, %s; want %s, %s: %v", c.name, v.Limiter, v.Confidence, c.limiter, c.confidence, v.Evidence)
		}
		if open := []verdict.Name{verdict.ReceiverWindow, verdict.Bottleneck}; v.Limiter == verdict.Unknown &&
			(!slices.Equal(v.Candidates, open) || v.Evidence[0].Code != verdict.WindowEqualsBDP) {
			t.Errorf("%s: %v, %v", c.name, v.Candidates, v.Evidence)
		}
	}
	full := steady(20e6, 204*ms, func(i int, s, r *transfer.Sample) {
		s.NotSent, s.Queued, s.Cwnd, s.SndbufLimited, s.MinRTT = 0, s.InFlight, 2*s.InFlight, s.At/4, 200*ms
	})
	if v := Judge(full); v.Limiter != verdict.Unknown || v.Evidence[0].Code != verdict.SendBufferEqualsBDP ||
		!slices.Equal(v.Candidates, []verdict.Name{verdict.SendBuffer, verdict.Bottleneck}) {
		t.Errorf("a send buffer: %s, %v, %v", v.Limiter, v.Candidates, v.Evidence)
	}
}

// TestJudge_WindowEqualsBDPWithQueue checks that the link is the limiter if a queue adds a tenth or more to the base
// RTT. Where packets are delivered in batches the min RTT is too high and the window seems to be one BDP. The
// standing queue shows that the link is full.
func TestJudge_WindowEqualsBDPWithQueue(t *testing.T) {
	for _, c := range []struct {
		name        string
		empty, trip time.Duration
		limiter     verdict.Name
	}{
		{"less than a tenth of queue", 106 * ms, 112 * ms, verdict.Unknown},
		{"a tenth, visible in the window", 100 * ms, 112 * ms, verdict.Bottleneck},
		{"more", 100 * ms, 130 * ms, verdict.Bottleneck},
	} {
		r := steady(20e6, 114*ms, func(i int, s, r *transfer.Sample) {
			s.SendWnd, r.ReceiveWnd, s.Cwnd, s.RwndLimited = s.InFlight, s.InFlight, 3*s.InFlight, s.At
			s.RTT, s.MinRTT = c.trip, c.empty
		})
		if v := Judge(r); v.Limiter != c.limiter {
			t.Errorf("%s: %s, %s; want %s: %v %v", c.name, v.Limiter, v.Confidence, c.limiter, v.Shares, v.Evidence)
		}
	}
}

// TestJudge_RateNearBestIsSteady checks that a rate within a tenth of the best lasting rate counts as that rate.
func TestJudge_RateNearBestIsSteady(t *testing.T) {
	lossy := steady(20e6, 200*ms, func(i int, s, r *transfer.Sample) {
		s.Acked, s.DeliveryBps = inBursts(20e6, i), 40e6
		s.Sent, s.RetransmittedBytes, s.Retransmitted = s.Acked, s.Acked/300, s.Acked/300/1448
	})
	v := Judge(lossy)
	if v.Limiter != verdict.Congestion || v.Confidence == verdict.High || v.Evidence[0].Code != verdict.LossAllTheTime {
		t.Errorf("%s, %s: %v", v.Limiter, v.Confidence, v.Evidence)
	}
	files, err := filepath.Glob("testdata/*.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		for _, e := range Judge(recorded(t, name)).Evidence {
			if level := e.Values["steady_bps"] / e.Values["best_bps"]; e.Code == verdict.LossBelowBest &&
				level >= threshold.FlatRate.Value {
				t.Errorf("%s: %.0f %% of the best is called less", filepath.Base(name), 100*level)
			}
		}
	}
}

// True windows keep their verdicts, and their confidence where the gaps between them are seen: not on short
// paths, for which these samples are too rare, nor of several connections.
func TestTrueWindowsStaySure(t *testing.T) {
	files, err := filepath.Glob("testdata/receiver-window_*.json.gz")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	sure := 0
	for _, name := range files {
		v := Judge(recorded(t, name))
		if v.Limiter != verdict.ReceiverWindow {
			t.Errorf("%s: %s", filepath.Base(name), v.Limiter)
		}
		if v.Confidence == verdict.High {
			sure++
		} else if !strings.Contains(name, "jitter") {
			t.Logf("%s: %s confidence", filepath.Base(name), v.Confidence)
		}
	}
	if 5*sure < 2*len(files) {
		t.Errorf("only %d of %d with high confidence", sure, len(files))
	}
}

// Of few segments in a round trip, too, it is seen whether they come at once, as a small window's do, or one after
// the other, as from a full link.
func TestGapsBetweenFewSegments(t *testing.T) {
	for name, gaps := range map[string]bool{
		"send-buffer_a-senders-own-rule-AFD-8-KB_4.1-Mbits-x-78.1-ms":             true,
		"receiver-window_fixed-SO_RCVBUF-four-streams_7.95-Mbits-x-198-ms":        true,
		"bottleneck_full-link-deep-queue_2.22-Mbits-x-5.75-ms":                    false,
		"bottleneck_full-link-full-small-window-as-well_2.03-Mbits-x-14.3-ms":     false,
		"bottleneck_full-link-shallow-queue_2-Mbits-x-23.2-ms":                    false,
		"bottleneck_full-link-four-streams_3.31-Mbits-x-107-ms":                   false,
		"receiver-window_fixed-SO_RCVBUF-a-little-too-small_7.46-Mbits-x-60.4-ms": false, // hardly any
		"receiver-window_no-window-scaling_413-Mbits-x-4.97-ms":                   false, // samples too far apart
	} {
		r := recorded(t, "testdata/"+name+".json.gz")
		least := r.Sender().MinRTT()
		a := &analysis{}
		for i := range r.Sender().Streams {
			a.connections = append(a.connections, newConnection(r, i, least))
		}
		a.path = newPath(least, a.connections)
		if a.path.evenness != 0 || hasIdleGaps.IsTrue(a.whole()) != gaps {
			t.Errorf("%s: want gaps %t, evenness %.2f, by few segments %.2f", name, gaps, a.path.evenness,
				a.path.evennessShortWindows)
		}
	}
}
