package watch

import (
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// rival is one of four connections of which each has a rate that rises and falls, out of step with the others. All of
// them together have 20 Mbit/s over 20 ms where steady says so; else they rise and fall together.
func rival(nth int, steady bool, rtt time.Duration) Seen {
	c := &Connection{Handshake: &transfer.Handshake{MSS: 1448}, moves: &moves{}}
	c.Local = netip.MustParseAddrPort(fmt.Sprintf("10.0.0.1:%d", 1000+nth))
	c.Remote = netip.MustParseAddrPort("10.0.0.2:80")
	const step = 50 * time.Millisecond
	acked := 0.0
	for i := range 120 {
		phase := float64(i) / 9
		if steady {
			phase += float64(nth) * math.Pi / 2
		}
		rate := 5e6 * (1 + 0.6*math.Sin(phase))
		acked += rate / 8 * step.Seconds()
		at := time.Duration(i+1) * step
		flight := int64(rate / 8 * rtt.Seconds())
		c.window.add(&Told{SendBuffer: 1 << 20, SendQueued: 1 << 20, Unacked: flight + 500_000,
			Sample: transfer.Sample{At: at, Have: clocks | transfer.HaveRTT | transfer.HaveMinRTT | transfer.HaveCwnd |
				transfer.HaveInFlight | transfer.HaveAcked | transfer.HaveRetrans | transfer.HaveRecovery | transfer.HaveRate,
				RTT: rtt, MinRTT: 20 * time.Millisecond, Cwnd: flight, Ssthresh: flight / 2, SendWnd: 1 << 20, InFlight: flight,
				NotSent: 500_000, Busy: at, DeliveryBps: rate, Acked: int64(acked), Sent: int64(acked) + flight,
				Retransmitted: int64(i / 4), RetransmittedBytes: int64(i/4) * 1448}}, time.Minute)
	}
	return Seen{Connection: c, Flows: []Flow{{Direction: transfer.Up, Bytes: int64(acked), Sampled: true,
		Verdict: fine(c, true)}}}
}

// TestConnectionsThatShareALink: each loses and is unsteady, and together they fill the link.
func TestConnectionsThatShareALink(t *testing.T) {
	const queue, none = 30 * time.Millisecond, 20 * time.Millisecond
	for _, c := range []struct {
		name   string
		steady bool
		rtt    time.Duration
		other  bool // the others go to another host
		want   verdict.Name
	}{
		{"steady together, before a queue", true, queue, false, verdict.Bottleneck},
		{"steady together, without one", true, none, false, verdict.Congestion},
		{"unsteady together", false, queue, false, verdict.Congestion},
		{"to several hosts", true, queue, true, verdict.Congestion},
	} {
		var v View
		for nth := range 4 {
			s := rival(nth, c.steady, c.rtt)
			if alone := s.Flows[0].Verdict; alone.Limiter != verdict.Congestion {
				t.Fatalf("%s: alone it is %s: %v", c.name, alone.Limiter, alone.Evidence)
			}
			if c.other {
				s.Remote = netip.MustParseAddrPort(fmt.Sprintf("10.0.0.%d:80", 2+nth))
			}
			v.Seen = append(v.Seen, s)
		}
		v.shared()
		for i := range v.Seen {
			got := v.Seen[i].Flows[0].Verdict
			if got.Limiter != c.want {
				t.Errorf("%s: %s, %s, %v", c.name, got.Limiter, got.Confidence, got.Evidence)
			}
			if shared := c.want == verdict.Bottleneck; shared != (got.Evidence[0].Code == verdict.SharedLink) ||
				shared && got.Confidence != verdict.Medium {
				t.Errorf("%s: %s, %v", c.name, got.Confidence, got.Evidence)
			}
			sums(t, c.name, got)
		}
	}
}

// TestWhatElseLimitsStaysAsItWas: of losses only their own part goes to the link.
func TestWhatElseLimitsStaysAsItWas(t *testing.T) {
	pair := []verdict.Name{verdict.ReceiverWindow, verdict.ReceiverApplication}
	v := verdict.Verdict{Limiter: verdict.ReceiverWindow, Confidence: verdict.Medium, Candidates: pair,
		Shares: verdict.Shares{verdict.ReceiverWindow: 0.7, verdict.Congestion: 0.3},
		Evidence: []verdict.Evidence{{Limiter: verdict.ReceiverWindow, Code: verdict.ReceiveWindowFull},
			{Limiter: verdict.Congestion, Code: verdict.LossBelowBest}}}
	got := ofShared(v, verdict.Values{"connections": 2})
	if got.Limiter != verdict.ReceiverWindow || got.Confidence != verdict.Medium || len(got.Candidates) != 2 {
		t.Errorf("%s, %s of %v", got.Limiter, got.Confidence, got.Candidates)
	}
	for _, e := range got.Evidence {
		if got.Shares[e.Limiter] == 0 {
			t.Errorf("%s is evidence of %s, which has no share of %v", e.Code, e.Limiter, got.Shares)
		}
	}
	sums(t, "a window and a shared link", got)
}
