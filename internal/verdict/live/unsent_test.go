package live

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// A sender whose buffer is full gathers what it may still hold into larger segments: that
// waits in no queue. A shaper's queue keeps much more waiting.
func TestGatheredSegmentsWaitInNoQueue(t *testing.T) {
	c := &connection{mss: 1448}
	for _, v := range []struct {
		inFlight, notSent int64
		waits             bool
	}{
		{147840, 4096, false}, {147840, 12288, false}, {147840, 16000, true}, {20000, 2000, false}, {20000, 44000, true},
		{0, 2896, true},
	} {
		s := transfer.Sample{Have: transfer.HaveSendWnd, InFlight: v.inFlight, NotSent: v.notSent, Cwnd: 411720,
			SendWnd: 191000}
		if got := c.dataWaits(&s, threshold.OpenWindow.Value); got != v.waits {
			t.Errorf("%d in flight, %d unsent: waits is %v", v.inFlight, v.notSent, got)
		}
	}
}

// BBR that a small send buffer keeps in its startup paces far above the rate, so that what was just
// written waits a moment; the buffer runs empty all the same, as no host's queue lets it.
func TestABufferThatRunsEmptyIsNoLocalQueue(t *testing.T) {
	r := steady(20e6, 90*ms, func(i int, s, r *transfer.Sample) {
		s.MinRTT, s.Cwnd, s.PacingBps = 60*ms, 2*s.InFlight, 60e6
		s.NotSent, s.Queued = 0, s.InFlight
		if i%3 == 0 {
			s.NotSent, s.Queued = 40000, s.InFlight+40000
		}
	})
	r.Near.Streams[0].Congestion = "bbr"
	if v := Judge(r); v.Limiter != verdict.Bottleneck {
		t.Errorf("%s, %v: %v", v.Limiter, v.Shares, v.Evidence)
	}
}

// TestJudge_ReceiveWindowUnderBBR checks that the receive window is the limiter of a BBR sender, which paces to the
// window's rate and fills the window only at times.
func TestJudge_ReceiveWindowUnderBBR(t *testing.T) {
	r := steady(20e6, 90*ms, func(i int, s, r *transfer.Sample) {
		s.MinRTT, s.Cwnd, s.PacingBps = 88*ms, 2*s.InFlight, 26e6
		s.SendWnd, r.ReceiveWnd, s.RwndLimited = s.InFlight, s.InFlight, s.At/3
	})
	r.Near.Streams[0].Congestion = "bbr"
	if v := Judge(r); v.Limiter != verdict.ReceiverWindow {
		t.Errorf("%s, %v: %v", v.Limiter, v.Shares, v.Evidence)
	}
}

// A send buffer and a receive window of one size hold back alike: neither alone gives more.
func TestBufferAndWindowOfOneSize(t *testing.T) {
	for _, c := range []struct {
		name    string
		window  float64 // of what is in flight
		limiter verdict.Name
	}{{"one size", 1.05, verdict.Mixed}, {"the window is larger", 1.5, verdict.SendBuffer}} {
		v := Judge(steady(4e6, 90*ms, func(i int, s, r *transfer.Sample) {
			s.NotSent, s.Queued, s.Cwnd, s.SndbufLimited = 0, s.InFlight, 2*s.InFlight, s.At/4
			s.SendWnd = int64(c.window * float64(s.InFlight))
		}))
		complete(t, v)
		said := v.Evidence[len(v.Evidence)-1].Code == verdict.EqualWindows
		if v.Limiter != c.limiter || (v.Limiter == verdict.Mixed) != said {
			t.Errorf("%s: %s of %v, %v: %v", c.name, v.Limiter, v.Candidates, v.Shares, v.Evidence)
		}
	}
	v := Judge(steady(4e6, 90*ms, func(i int, s, r *transfer.Sample) {
		s.SendWnd, s.NotSent, s.RwndLimited = s.InFlight, 1448, s.At
		s.Queued = s.InFlight + s.NotSent
	}))
	if v.Limiter != verdict.Mixed || len(v.Candidates) != 2 {
		t.Errorf("a window, and a buffer behind it: %s of %v, %v", v.Limiter, v.Candidates, v.Shares)
	}
}
