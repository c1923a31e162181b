package limiter

import (
	"math"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const ms = time.Millisecond

// steady is a transfer of 10 s at a constant rate, sampled every 50 ms, to be bent into
// the shape of a limiter. Its sender always has more to send and nothing else limits.
func steady(bps float64, rtt time.Duration, bend func(i int, sender, receiver *transfer.Sample)) *transfer.Result {
	const everything = transfer.HaveProgram<<1 - 1
	near := transfer.Stream{Congestion: "cubic", Last: 10 * time.Second, Handshake: &transfer.Handshake{MSS: 1448, SendScale: 10, ReceiveScale: 10}}
	far := near
	inFlight := int64(bps / 8 * rtt.Seconds())
	for i := 1; i <= 200; i++ {
		at := time.Duration(i) * 50 * ms
		acked := int64(bps / 8 * at.Seconds())
		s := transfer.Sample{At: at, Have: everything, RTT: rtt, MinRTT: rtt, Cwnd: inFlight, Ssthresh: inFlight / 2, SendWnd: 8 * inFlight,
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

func shaped(bps float64, rtt time.Duration, bend func(i int, s, r *transfer.Sample), then func(*transfer.Result)) *transfer.Result {
	result := steady(bps, rtt, bend)
	then(result)
	return result
}

func TestJudge(t *testing.T) {
	none := func(*transfer.Result) {}
	for _, c := range []struct {
		what       string
		result     *transfer.Result
		limiter    Name
		subtype    string
		confidence Confidence
	}{
		{"a full window of 64 KiB at 40 ms", shaped(13.1e6, 40*ms, func(i int, s, r *transfer.Sample) {
			s.SendWnd, r.ReceiveWnd, s.Cwnd, s.ReceiveLimited = 65535, 65535, 130000, s.At*97/100
		}, func(r *transfer.Result) { r.Near.Streams[0].Handshake.SendScale = -1 }), ReceiverWindow, Unscaled, High},
		{"the same window from SO_RCVBUF", shaped(13.1e6, 40*ms, func(i int, s, r *transfer.Sample) {
			s.SendWnd, r.ReceiveWnd, s.Cwnd, s.ReceiveLimited = 65535, 65535, 130000, s.At
		}, func(r *transfer.Result) { r.Far.Streams[0].ReceiveBuffer.Requested = 65536 }), ReceiverWindow, Fixed, High},
		{"a full window behind a deep queue", shaped(20e6, 24*ms, func(i int, s, r *transfer.Sample) {
			s.SendWnd, r.ReceiveWnd, s.Cwnd, s.ReceiveLimited, s.MinRTT = 60000, 60000, 130000, s.At, 5*ms
		}, none), Bottleneck, "", High},
		{"a small send buffer that the kernel's clock hardly sees", steady(4e6, 110*ms, func(i int, s, r *transfer.Sample) {
			s.NotSent, s.Queued, s.Cwnd, s.SendLimited = 0, s.InFlight, 2*s.InFlight, s.At/4
		}), SendBuffer, "", High},
		{"a reader that stops", steady(4e6, 40*ms, func(i int, s, r *transfer.Sample) {
			s.ReceiveLimited, s.SendWnd, r.Queued, r.ReceiveWnd, r.Paused, r.Blocked = s.At, 2000, 100000, 2000, s.At*9/10, 0
		}), ReceiverApplication, "", High},
		{"a writer that pauses", steady(4e6, 40*ms, func(i int, s, r *transfer.Sample) {
			s.NotSent, s.Busy, s.Paused, s.Blocked, s.Cwnd = 0, s.At/5, s.At*4/5, 0, 10*s.InFlight
		}), Application, "", High},
		{"a writer that writes little and often, always with something outstanding", steady(1e6, 200*ms, func(i int, s, r *transfer.Sample) {
			s.NotSent, s.Paused, s.Blocked, s.Cwnd = 0, s.At*99/100, 0, 10*s.InFlight
		}), Application, "", High},
		{"a queue that stands in the path", steady(20e6, 90*ms, func(i int, s, r *transfer.Sample) { s.MinRTT = 40 * ms }), Bottleneck, "", High},
		{"a shaper on this host", steady(20e6, 40*ms, func(i int, s, r *transfer.Sample) { s.Cwnd = 2 * s.InFlight }), LocalQueue, "", High},
		{"a paced socket", shaped(20e6, 40*ms, func(i int, s, r *transfer.Sample) { s.Cwnd, s.PacingBps = 2*s.InFlight, 20.5e6 },
			func(r *transfer.Result) { r.Spec.Near.PacingBps = 20.5e6 }), Pacing, "", High},
		{"a core that is full", shaped(20e6, 40*ms, func(i int, s, r *transfer.Sample) { s.Blocked, s.NotSent, s.Busy = 0, 0, s.At/2 },
			func(r *transfer.Result) { r.Near.CPU = &transfer.CPU{BusiestThread: 0.99} }), CPU, "", High},
		{"requests held by Nagle", steady(1e5, 40*ms, func(i int, s, r *transfer.Sample) {
			s.NotSent, s.InFlight, s.Cwnd, s.SendWnd, s.Blocked, s.Awaited = 500, 500, 14480, 65535, 0, s.At
		}), NagleDelayedAck, "", High},
		{"nothing gets through", steady(0, 40*ms, func(i int, s, r *transfer.Sample) { s.Timeouts, s.InFlight, s.SendWnd = 3, 1448, 65535 }),
			MTUBlackHole, "", Medium},
		{"loss without a queue", steady(10e6, 40*ms, func(i int, s, r *transfer.Sample) {
			saw := int64(math.Abs(math.Sin(float64(i)/25)) * 2e6)
			s.Acked, s.Sent, s.DeliveryBps = s.Acked+saw, s.Sent+saw, 20e6
			s.Retransmitted, s.RetransmittedBytes = int64(i), int64(i)*1448
		}), Congestion, "", High},
		{"no end seen", &transfer.Result{}, Unknown, "", Low},
	} {
		v := Judge(c.result)
		if v.Limiter != c.limiter || v.Subtype != c.subtype || v.Confidence != c.confidence {
			t.Errorf("%s: %s (%s), %s; want %s (%s), %s\n\tshares %v\n\t%v", c.what, v.Limiter, v.Subtype, v.Confidence,
				c.limiter, c.subtype, c.confidence, v.Shares, v.Evidence)
		}
		sum := 0.0
		for _, share := range v.Shares {
			sum += share
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("%s: shares sum to %v", c.what, sum)
		}
	}
}

// A stream that was never sampled must not be looked into.
func TestReceiverAloneWithAnEmptyStream(t *testing.T) {
	r := steady(4e6, 40*ms, func(i int, s, r *transfer.Sample) {
		r.Queued, r.ReceiveWnd, r.Paused, r.Blocked = 100000, 2000, s.At*9/10, 0
	})
	r.Near, r.Far.Streams = nil, append([]transfer.Stream{{}}, r.Far.Streams...)
	if v := Judge(r); v.Limiter != ReceiverApplication || v.Confidence != High {
		t.Errorf("%s, %s confidence; shares %v", v.Limiter, v.Confidence, v.Shares)
	}
}

// A system that tells bytes but no round trips leaves the verdict open.
func TestWithoutRoundTripsNothingIsKnown(t *testing.T) {
	var s transfer.Stream
	for i := range 100 {
		s.Samples = append(s.Samples, transfer.Sample{At: time.Duration(i) * 40 * time.Millisecond, Have: transfer.HaveAcked | transfer.HaveProgram,
			Acked: int64(i) * 100_000, Program: int64(i) * 100_000})
	}
	s.Last = s.Samples[99].At
	v := Judge(&transfer.Result{Spec: transfer.Spec{Direction: transfer.Up}, Near: &transfer.End{Streams: []transfer.Stream{s}}})
	if v.Limiter != Unknown || len(v.Candidates) == 0 {
		t.Errorf("%+v, want unknown with candidates", v)
	}
}
