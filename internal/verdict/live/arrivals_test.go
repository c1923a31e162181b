package live

import (
	"math"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestArrivals judges uploads with data from the receiver's kernel and from the sending program, without the
// sender's kernel.
func TestArrivals(t *testing.T) {
	const rtt = 40 * time.Millisecond
	upload := func(loaded time.Duration, disordered float64, idle float64, reported bool) *transfer.Result {
		s := transfer.Stream{First: time.Millisecond}
		for at := s.First; at < 5*time.Second; at += 40 * time.Millisecond {
			received := int64(at.Seconds() * 1.25e6)
			s.Samples = append(s.Samples, transfer.Sample{At: at, Have: transfer.HaveMinRTT | transfer.HaveRTT |
				transfer.HaveReceived | transfer.HaveReceiveWnd | transfer.HaveProgram | transfer.HaveQueue |
				transfer.HaveRcvOOOPack, MinRTT: rtt, RTT: loaded, Received: received, ReceiveWnd: 6 << 20, Program: received,
				Blocked: at, RcvOOOPack: int64(float64(received) / 1448 * disordered)})
			s.Last, s.Bytes = at, received
		}
		r := &transfer.Result{Spec: transfer.Spec{Direction: transfer.Down, Time: 5 * time.Second},
			Near: &transfer.End{Streams: []transfer.Stream{s}}, Complete: true}
		if reported {
			r.Far = &transfer.End{Streams: []transfer.Stream{{Last: s.Last, Samples: []transfer.Sample{{At: s.Last,
				Have: transfer.HaveProgram, Paused: time.Duration(idle * float64(s.Last))}}}}}
		}
		return r
	}
	echoed := func(r *transfer.Result, loaded time.Duration) *transfer.Result {
		r.Latency = &transfer.Latency{Method: transfer.EchoMethod, Idle: []time.Duration{rtt, rtt},
			Loaded: []time.Duration{loaded}}
		return r
	}
	// probed has 20 probes, a share of them through a queue.
	probed := func(r *transfer.Result, share float64) *transfer.Result {
		echoed(r, rtt)
		for i := range 20 {
			r.Latency.Loaded = append(r.Latency.Loaded, rtt)
			if float64(i%10) < 10*share {
				r.Latency.Loaded[i] = 3 * rtt / 2
			}
		}
		return r
	}
	late := func(r *transfer.Result, share float64) *transfer.Result {
		r.Far.CPU = &transfer.CPU{RunqueueWait: share}
		return r
	}
	scattered := func(r *transfer.Result, share float64) *transfer.Result {
		for i := range r.Near.Streams[0].Samples {
			s := &r.Near.Streams[0].Samples[i]
			s.RTTVar = s.RTT - rtt
		}
		return late(r, share)
	}
	// slower leaves so much of the rate, in turns: much, then nothing.
	slower := func(r *transfer.Result, share float64, turns bool) *transfer.Result {
		samples := r.Near.Streams[0].Samples
		for i := range samples {
			at := samples[i].At.Seconds()
			if turns {
				part := math.Mod(at, 0.8)
				at += min(part, 0.4) - max(part-0.4, 0)
			}
			samples[i].Received = int64(share * at * 1.25e6)
		}
		return r
	}
	// overshot has all losses in its first half second.
	overshot := func(r *transfer.Result) *transfer.Result {
		for i := range r.Near.Streams[0].Samples {
			s := &r.Near.Streams[0].Samples[i]
			s.RcvOOOPack = min(int64(s.At/(5*time.Millisecond)), 100)
		}
		return r
	}
	// loopback has no path: only the host takes time.
	loopback := func(r *transfer.Result) *transfer.Result {
		for i := range r.Near.Streams[0].Samples {
			r.Near.Streams[0].Samples[i].MinRTT = 20 * time.Microsecond
		}
		return r
	}
	for name, c := range map[string]struct {
		r    *transfer.Result
		want verdict.Name
		how  verdict.Confidence
	}{
		"no idle time known": {upload(80*time.Millisecond, 0, 0, false), verdict.Unknown, verdict.Low},
		"a queue":            {upload(80*time.Millisecond, 0, 0, true), verdict.Bottleneck, verdict.Medium},
		"a queue that loses": {upload(80*time.Millisecond, 0.01, 0, true), verdict.Bottleneck, verdict.Medium},
		"loss and no queue":  {upload(41*time.Millisecond, 0.01, 0, true), verdict.Congestion, verdict.Medium},
		"losses, and a queue that probes alone show": {echoed(upload(41*time.Millisecond, 0.01, 0, true), 3*rtt),
			verdict.Bottleneck, verdict.Low},
		"losses at an unsteady rate, and a queue that probes alone show": {slower(echoed(upload(41*time.Millisecond, 0.01,
			0, true), 3*rtt), 1, true), verdict.Unknown, verdict.Low},
		"losses, and probes without a queue": {echoed(upload(41*time.Millisecond, 0.01, 0, true), rtt),
			verdict.Congestion, verdict.Medium},
		"late acknowledgements": {echoed(upload(80*time.Millisecond, 0.01, 0, true), rtt), verdict.Congestion,
			verdict.Medium},
		"a late browser": {echoed(upload(41*time.Millisecond, 0, 0, true), 3*rtt), verdict.Unknown,
			verdict.Low},
		"a queue that nearly all probes show": {probed(upload(rtt, 0, 0, true), 0.9), verdict.Bottleneck, verdict.Low},
		"a queue that most probes show":       {probed(upload(rtt, 0, 0, true), 0.7), verdict.Unknown, verdict.Low},
		"a queue that nearly all probes show, at an unsteady rate": {slower(probed(upload(rtt, 0, 0, true), 0.9), 1, true),
			verdict.Unknown, verdict.Low},
		"a queue that few probes show": {probed(upload(rtt, 0, 0, true), 0.3), verdict.Sender, verdict.Low},
		"both see it": {echoed(upload(80*time.Millisecond, 0.01, 0, true), 2*rtt), verdict.Bottleneck,
			verdict.Medium},
		"jitter without a standing queue": {scattered(echoed(upload(80*time.Millisecond, 0, 0, true), 2*rtt), 0),
			verdict.Unknown, verdict.Low},
		"a device without time": {scattered(echoed(upload(80*time.Millisecond, 0, 0, true), 2*rtt), 0.8), verdict.CPU,
			verdict.Medium},
		"losses, and a device without time": {scattered(echoed(upload(80*time.Millisecond, 0.01, 0, true), 2*rtt), 0.8),
			verdict.Unknown, verdict.Low},
		"a queue, and a device without time": {echoed(late(upload(80*time.Millisecond, 0, 0, true), 0.8), 2*rtt),
			verdict.Bottleneck, verdict.Low},
		"no time, and data by turns": {late(slower(echoed(upload(80*time.Millisecond, 0, 0, true),
			2*rtt), 1, true), 0.7), verdict.CPU, verdict.Medium},
		"late at times, and data by turns": {late(slower(upload(41*time.Millisecond, 0, 0, true),
			1, true), 0.3), verdict.CPU, verdict.Medium},
		"late at times, and a full link": {late(echoed(upload(80*time.Millisecond, 0, 0, true), 2*rtt),
			0.3), verdict.Bottleneck, verdict.Low},
		"losses that leave room": {slower(upload(41*time.Millisecond, 0.0006, 0, true), 0.3, false), verdict.Sender,
			verdict.Low},
		"losses that leave room, and no time": {late(slower(upload(41*time.Millisecond, 0.0006, 0,
			true), 0.3, false), 0.8), verdict.CPU, verdict.Medium},
		"losses of slow start alone": {overshot(upload(41*time.Millisecond, 0, 0, true)), verdict.Sender, verdict.Low},
		"losses that a host's own work makes look like some": {loopback(slower(upload(2*time.Millisecond, 0.002, 0, true),
			0.2, false)), verdict.Sender, verdict.Low},
		"losses, no queue and a late device": {late(upload(41*time.Millisecond, 0.01, 0, true), 0.4), verdict.Unknown,
			verdict.Low},
		"nothing to send":     {upload(41*time.Millisecond, 0, 0.8, true), verdict.Application, verdict.Medium},
		"nothing in the way":  {upload(41*time.Millisecond, 0, 0.1, true), verdict.Sender, verdict.Low},
		"a program that lies": {upload(41*time.Millisecond, 0, -5, true), verdict.Sender, verdict.Low},
	} {
		v := Judge(c.r)
		sum := 0.0
		for _, share := range v.Shares {
			sum += share
		}
		if v.Limiter != c.want || v.Confidence != c.how || sum < 0.999 || sum > 1.001 {
			t.Errorf("%s: %s, %s confidence, shares %v", name, v.Limiter, v.Confidence, v.Shares)
		}
	}
}
