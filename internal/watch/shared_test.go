package watch

import (
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// rival is one of four connections whose rates rise and fall. With steady their sum is 20 Mbit/s over 20 ms; else they
// rise and fall together.
func rival(nth int, steady bool, rtt time.Duration) Observed {
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
		c.window.Add(&transfer.Sample{At: at, Have: clocks | transfer.HaveRTT | transfer.HaveMinRTT | transfer.HaveCwnd |
			transfer.HaveInFlight | transfer.HaveAcked | transfer.HaveRetrans | transfer.HaveRecovery | transfer.HaveRate,
			RTT: rtt, MinRTT: 20 * time.Millisecond, Cwnd: flight, Ssthresh: flight / 2, SendWnd: 1 << 20, InFlight: flight,
			NotSent: 500_000, Busy: at, DeliveryBps: rate, Acked: int64(acked), Sent: int64(acked) + flight,
			Retransmitted: int64(i / 4), RetransmittedBytes: int64(i/4) * 1448},
			live.Queues{SendBuffer: 1 << 20, SendQueued: 1 << 20, Unacked: flight + 500_000}, time.Minute)
	}
	return Observed{Connection: c, Flows: []Flow{{Direction: transfer.Up, Bytes: int64(acked), Sampled: true,
		Verdict: c.sampled(0).Judge(true)}}}
}

// TestShared_ConnectionsFillOneLink: each loses and is unsteady, and together they fill the link.
func TestShared_ConnectionsFillOneLink(t *testing.T) {
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
			v.Connections = append(v.Connections, s)
		}
		v.shared()
		for i := range v.Connections {
			got := v.Connections[i].Flows[0].Verdict
			if got.Limiter != c.want {
				t.Errorf("%s: %s, %s, %v", c.name, got.Limiter, got.Confidence, got.Evidence)
			}
			if shared := c.want == verdict.Bottleneck; shared != (got.Evidence[0].Code == verdict.SharedLink) ||
				shared && got.Confidence != verdict.Medium {
				t.Errorf("%s: %s, %v", c.name, got.Confidence, got.Evidence)
			}
			sum := 0.0
			for _, share := range got.Shares {
				sum += share
			}
			if math.Abs(sum-1) > 1e-6 {
				t.Errorf("%s: shares sum to %v", c.name, sum)
			}
		}
	}
}
