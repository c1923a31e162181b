package live

import (
	"math"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

const ms = time.Millisecond

// steady is a transfer of 10 s at a constant rate, sampled every 50 ms, to be bent into
// the shape of a limiter. Its sender always has more to send and nothing else limits.
func steady(bps float64, rtt time.Duration, bend func(i int, sender, receiver *transfer.Sample)) *transfer.Result {
	const everything = transfer.HaveProgram<<1 - 1
	near := transfer.Stream{Congestion: "cubic", Last: 10 * time.Second, Handshake: &transfer.Handshake{MSS: 1448,
		SendScale: 10, ReceiveScale: 10}}
	far := near
	inFlight := int64(bps / 8 * rtt.Seconds())
	for i := 1; i <= 200; i++ {
		at := time.Duration(i) * 50 * ms
		acked := int64(bps / 8 * at.Seconds())
		s := transfer.Sample{At: at, Have: everything, RTT: rtt, MinRTT: rtt, Cwnd: inFlight, Ssthresh: inFlight / 2,
			SendWnd:  8 * inFlight,
			InFlight: inFlight, NotSent: 1 << 20, Queued: inFlight + 1<<20, Busy: at, DeliveryBps: bps, PacingBps: 1.2 * bps,
			Acked: acked, Sent: acked, Program: acked, Blocked: at}
		r := transfer.Sample{At: at, Have: everything, Received: acked, ReceiveWnd: 8 * inFlight, Program: acked, Blocked: at}
		bend(i, &s, &r)
		near.Samples, far.Samples = append(near.Samples, s), append(far.Samples, r)
	}
	far.Bytes = far.Samples[199].Received
	return &transfer.Result{Spec: transfer.Spec{Direction: transfer.Up}, Complete: true,
		Near: &transfer.End{Streams: []transfer.Stream{near}}, Far: &transfer.End{Streams: []transfer.Stream{far}}}
}

func shaped(bps float64, rtt time.Duration, bend func(i int, s, r *transfer.Sample),
	then func(*transfer.Result)) *transfer.Result {
	result := steady(bps, rtt, bend)
	then(result)
	return result
}

func TestJudge(t *testing.T) {
	none := func(*transfer.Result) {}
	for _, c := range []struct {
		name       string
		result     *transfer.Result
		limiter    verdict.Name
		subtype    string
		confidence verdict.Confidence
	}{
		{"a full window of 64 KiB at 40 ms", shaped(13.1e6, 40*ms, func(i int, s, r *transfer.Sample) {
			s.SendWnd, r.ReceiveWnd, s.Cwnd, s.RwndLimited = 65535, 65535, 130000, s.At*97/100
		}, func(r *transfer.Result) { r.Near.Streams[0].Handshake.SendScale = -1 }), verdict.ReceiverWindow, verdict.Unscaled,
			verdict.Medium},
		{"the same window from SO_RCVBUF", shaped(13.1e6, 40*ms, func(i int, s, r *transfer.Sample) {
			s.SendWnd, r.ReceiveWnd, s.Cwnd, s.RwndLimited = 65535, 65535, 130000, s.At
		}, func(r *transfer.Result) { r.Far.Streams[0].ReceiveBuffer.Requested = 65536 }), verdict.ReceiverWindow,
			verdict.Fixed, verdict.Medium},
		{"a full window behind a deep queue", shaped(20e6, 24*ms, func(i int, s, r *transfer.Sample) {
			s.SendWnd, r.ReceiveWnd, s.Cwnd, s.RwndLimited, s.MinRTT = 60000, 60000, 130000, s.At, 5*ms
		}, none), verdict.Bottleneck, "", verdict.High},
		{"a small send buffer that the kernel's clock hardly sees", steady(4e6, 90*ms, func(i int, s, r *transfer.Sample) {
			s.NotSent, s.Queued, s.Cwnd, s.SndbufLimited = 0, s.InFlight, 2*s.InFlight, s.At/4
		}), verdict.SendBuffer, "", verdict.Medium},
		{"a reader that stops", steady(4e6, 40*ms, func(i int, s, r *transfer.Sample) {
			s.RwndLimited, s.SendWnd, r.Queued, r.ReceiveWnd, r.Paused, r.Blocked = s.At, 2000, 100000, 2000, s.At*9/10, 0
		}), verdict.ReceiverApplication, "", verdict.High},
		{"a writer that pauses", steady(4e6, 40*ms, func(i int, s, r *transfer.Sample) {
			s.NotSent, s.Busy, s.Paused, s.Blocked, s.Cwnd = 0, s.At/5, s.At*4/5, 0, 10*s.InFlight
		}), verdict.Application, "", verdict.High},
		{"a writer that writes little and often, always with something outstanding",
			steady(1e6, 200*ms, func(i int, s, r *transfer.Sample) {
				s.NotSent, s.Paused, s.Blocked, s.Cwnd = 0, s.At*99/100, 0, 10*s.InFlight
			}), verdict.Application, "", verdict.High},
		{"a standing queue in the path", steady(20e6, 90*ms, func(i int, s, r *transfer.Sample) { s.MinRTT = 40 * ms }),
			verdict.Bottleneck, "", verdict.High},
		{"a shaper on this host", steady(20e6, 40*ms, func(i int, s, r *transfer.Sample) { s.Cwnd = 2 * s.InFlight }),
			verdict.LocalQueue, "", verdict.High},
		{"a paced socket", shaped(20e6, 40*ms, func(i int, s, r *transfer.Sample) {
			s.Cwnd, s.PacingBps = 2*s.InFlight,
				20.5e6
		},
			func(r *transfer.Result) { r.Spec.Near.PacingBps = 20.5e6 }), verdict.Pacing, "", verdict.High},
		{"a core that is full", shaped(20e6, 40*ms, func(i int, s, r *transfer.Sample) {
			s.Blocked, s.NotSent, s.Busy = 0, 0,
				s.At/2
		},
			func(r *transfer.Result) { r.Near.CPU = &transfer.CPU{BusiestThread: 0.99} }), verdict.CPU, "", verdict.High},
		{"requests delayed by Nagle", steady(1e5, 40*ms, func(i int, s, r *transfer.Sample) {
			s.NotSent, s.InFlight, s.Cwnd, s.SendWnd, s.Blocked, s.Awaited = 500, 500, 14480, 65535, 0, s.At
		}), verdict.NagleDelayedAck, "", verdict.High},
		{"nothing gets through", steady(0, 40*ms, func(i int, s, r *transfer.Sample) {
			s.Timeouts, s.InFlight, s.SendWnd = 3,
				1448, 65535
		}),
			verdict.MTUBlackHole, "", verdict.Medium},
		{"loss without a queue", steady(10e6, 40*ms, func(i int, s, r *transfer.Sample) {
			saw := int64(math.Abs(math.Sin(float64(i)/25)) * 2e6)
			s.Acked, s.Sent, s.DeliveryBps = s.Acked+saw, s.Sent+saw, 20e6
			s.Retransmitted, s.RetransmittedBytes = int64(i), int64(i)*1448
		}), verdict.Congestion, "", verdict.High},
		{"no end seen", &transfer.Result{}, verdict.Unknown, "", verdict.Low},
	} {
		v := Judge(c.result)
		if v.Limiter != c.limiter || v.Subtype != c.subtype || v.Confidence != c.confidence {
			t.Errorf("%s: %s (%s), %s; want %s (%s), %s\n\tshares %v\n\t%v", c.name, v.Limiter, v.Subtype, v.Confidence,
				c.limiter, c.subtype, c.confidence, v.Shares, v.Evidence)
		}
		sum := 0.0
		for _, share := range v.Shares {
			sum += share
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("%s: shares sum to %v", c.name, sum)
		}
	}
}

// A stream that was never sampled must not be looked into.
func TestReceiverAloneWithAnEmptyStream(t *testing.T) {
	r := steady(4e6, 40*ms, func(i int, s, r *transfer.Sample) {
		r.Queued, r.ReceiveWnd, r.Paused, r.Blocked = 100000, 2000, s.At*9/10, 0
	})
	r.Near, r.Far.Streams = nil, append([]transfer.Stream{{}}, r.Far.Streams...)
	if v := Judge(r); v.Limiter != verdict.ReceiverApplication || v.Confidence != verdict.High {
		t.Errorf("%s, %s confidence; shares %v", v.Limiter, v.Confidence, v.Shares)
	}
}

// TestJudge_WithoutRTT checks that the verdict is unknown on a system that reports bytes but no RTT.
func TestJudge_WithoutRTT(t *testing.T) {
	var s transfer.Stream
	for i := range 100 {
		s.Samples = append(s.Samples, transfer.Sample{At: time.Duration(i) * 40 * time.Millisecond,
			Have:  transfer.HaveAcked | transfer.HaveProgram,
			Acked: int64(i) * 100_000, Program: int64(i) * 100_000})
	}
	s.Last = s.Samples[99].At
	v := Judge(&transfer.Result{Spec: transfer.Spec{Direction: transfer.Up},
		Near: &transfer.End{Streams: []transfer.Stream{s}}})
	if v.Limiter != verdict.Unknown || len(v.Candidates) == 0 {
		t.Errorf("%+v, want unknown with candidates", v)
	}
}

// A kernel short of memory closes windows as a slow reader does: less sure, and said.
func TestMemoryPressureMakesLessSure(t *testing.T) {
	slow := func(sender, receiver *transfer.MemoryPressure) verdict.Verdict {
		r := steady(4e6, 40*ms, func(i int, s, r *transfer.Sample) {
			s.RwndLimited, s.SendWnd, r.Queued, r.ReceiveWnd, r.Paused, r.Blocked = s.At, 2000, 100000, 2000, s.At*9/10, 0
		})
		r.Near.MemoryPressure, r.Far.MemoryPressure = sender, receiver
		return Judge(r)
	}
	if v := slow(nil, nil); v.Limiter != verdict.ReceiverApplication || v.Confidence != verdict.High {
		t.Errorf("without: %s, %s", v.Limiter, v.Confidence)
	}
	for _, c := range []struct {
		sender, receiver *transfer.MemoryPressure
		key              string
	}{
		{nil, &transfer.MemoryPressure{Times: 3, Time: 2 * time.Second}, "receiver_s"},
		{&transfer.MemoryPressure{Times: 1}, nil, "sender_times"},
	} {
		v := slow(c.sender, c.receiver)
		last := v.Evidence[len(v.Evidence)-1]
		if v.Confidence != verdict.Medium || last.Code != verdict.MemoryPressure || last.Values[c.key] <= 0 {
			t.Errorf("%s: %s, %v", c.key, v.Confidence, last)
		}
	}
}

// A host that was busy with other things lowers the confidence, and that is said.
func TestABusyHostMakesLessSure(t *testing.T) {
	full := func(starved float64) verdict.Verdict {
		r := steady(20e6, 90*ms, func(i int, s, _ *transfer.Sample) { s.MinRTT = 40 * ms })
		r.Far.CPU = &transfer.CPU{Wall: 10 * time.Second, RunqueueWait: starved}
		return Judge(r)
	}
	if v := full(0.02); v.Limiter != verdict.Bottleneck || v.Confidence != verdict.High {
		t.Errorf("a quiet host: %s, %s", v.Limiter, v.Confidence)
	}
	for starved, want := range map[float64]verdict.Confidence{0.3: verdict.Medium, 0.6: verdict.Low} {
		v := full(starved)
		if v.Limiter != verdict.Bottleneck || v.Confidence != want ||
			v.Evidence[len(v.Evidence)-1].Code != verdict.RunqueueWaited {
			t.Errorf("a host busy for %.1f of the time: %s, %s, %v", starved, v.Limiter, v.Confidence, v.Evidence)
		}
	}
}

// A reader whose core has to wake up for each segment lacks no processor: only where others
// have its core is that what closes the window.
func TestWakingUpIsNotTheReadersProcessor(t *testing.T) {
	for starved, cpu := range map[float64]bool{0.02: false, 0.6: true} {
		r := steady(4e6, 40*ms, func(i int, s, r *transfer.Sample) {
			s.RwndLimited, s.SendWnd, r.Queued, r.ReceiveWnd, r.Paused, r.Blocked = s.At, 2000, 100000, 2000, 0, 0
			r.RunqueueWait = s.At * 6 / 10
		})
		r.Far.CPU = &transfer.CPU{Wall: 10 * time.Second, RunqueueWait: starved}
		if v := Judge(r); (v.Limiter == verdict.CPU) != cpu {
			t.Errorf("others had its core %.2f of the time: %s, %v", starved, v.Limiter, v.Evidence)
		}
	}
}
