package live

import (
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Where the sender cannot be seen, a window's worth comes at once and then nothing for
// the rest of a round trip: the window limits all of that time, however the samples fall.
func TestWindowsWithoutASender(t *testing.T) {
	const rtt = 40 * time.Millisecond
	for _, c := range []struct {
		name   string
		window int64
		burst  int64 // bytes that come each round trip
		every  time.Duration
		want   verdict.Name
	}{
		{"a full window, sampled often", 16000, 16000, 5 * time.Millisecond, verdict.ReceiverWindow},
		{"a full window, sampled out of phase", 16000, 16000, 37 * time.Millisecond, verdict.ReceiverWindow},
		{"a full window, sampled rarely", 16000, 16000, 100 * time.Millisecond, verdict.ReceiverWindow},
		{"a third of the window", 48000, 16000, 5 * time.Millisecond, verdict.Unknown},
		{"a third of the window, sampled out of phase", 48000, 16000, 37 * time.Millisecond, verdict.Unknown},
	} {
		stream := transfer.Stream{First: time.Millisecond, ReceiveBuffer: transfer.Buffer{Requested: int(c.window)}}
		have := transfer.HaveMinRTT | transfer.HaveReceived | transfer.HaveReceiveWnd | transfer.HaveProgram |
			transfer.HaveQueue
		for at := stream.First; at < 2*time.Second; at += c.every {
			bytes := c.burst * int64(at/rtt+1)
			stream.Samples = append(stream.Samples, transfer.Sample{At: at, Have: have, MinRTT: rtt, Received: bytes,
				ReceiveWnd: c.window, Program: bytes,
				Blocked: at})
			stream.Last, stream.Bytes = at, bytes
		}
		v := Judge(&transfer.Result{Spec: transfer.Spec{Direction: transfer.Down, Time: 2 * time.Second},
			Near: &transfer.End{Streams: []transfer.Stream{stream}}, Complete: true})
		if v.Limiter != c.want {
			t.Errorf("%s: %s, shares %v", c.name, v.Limiter, v.Shares)
		}
	}
}

// A constant rate and probes with longer round trips: the link is probably full, though the sender is not visible. If
// only some probes took longer, the host may have been late.
func TestJudge_FullLinkByProbesAtTheReceiver(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name   string
		idle   time.Duration
		loaded time.Duration
		faster int64         // of the second half
		start  time.Duration // of slow start
		short  int           // probes of 20 that took no longer: the first ones
		want   verdict.Name
		sure   verdict.Confidence
	}{
		{"pings rose", 20 * ms, 80 * ms, 1, 0, 0, verdict.Bottleneck, verdict.Medium},
		{"pings rose, long path", 150 * ms, 260 * ms, 1, 0, 4, verdict.Bottleneck, verdict.Medium},
		{"pings rose after slow start", 150 * ms, 260 * ms, 1, 4 * time.Second, 8, verdict.Bottleneck, verdict.Medium},
		{"most pings rose", 20 * ms, 80 * ms, 1, 0, 7, verdict.Bottleneck, verdict.Low},
		{"some pings rose", 20 * ms, 80 * ms, 1, 0, 12, verdict.Unknown, verdict.Low},
		{"pings stayed", 20 * ms, 21 * ms, 1, 0, 0, verdict.Unknown, verdict.Low},
		{"no pings", 0, 0, 1, 0, 0, verdict.Unknown, verdict.Low},
		{"pings rose, the rate varied", 20 * ms, 80 * ms, 6, 0, 0, verdict.Unknown, verdict.Low},
	} {
		t.Run(c.name, func(t *testing.T) {
			stream := transfer.Stream{First: ms}
			have := transfer.HaveMinRTT | transfer.HaveReceived | transfer.HaveReceiveWnd | transfer.HaveProgram |
				transfer.HaveQueue
			for at := stream.First; at < 10*time.Second; at += 20 * ms {
				rate := int64(25_000)
				if at%(2*time.Second) > time.Second {
					rate *= c.faster
				}
				if at < c.start {
					rate /= 8
				}
				stream.Bytes += rate
				stream.Last = at
				stream.Samples = append(stream.Samples, transfer.Sample{At: at, Have: have, MinRTT: 20 * ms,
					Received: stream.Bytes, ReceiveWnd: 6 << 20, Program: stream.Bytes, Blocked: at})
			}
			r := &transfer.Result{Spec: transfer.Spec{Direction: transfer.Down, Time: 10 * time.Second},
				Near: &transfer.End{Streams: []transfer.Stream{stream}}, Complete: true}
			if c.idle > 0 {
				r.Latency = &transfer.Latency{Method: "ICMP", Idle: []time.Duration{c.idle, c.idle, c.idle},
					Loaded: append(slices.Repeat([]time.Duration{c.idle}, c.short),
						slices.Repeat([]time.Duration{c.loaded}, 20-c.short)...)}
			}
			v := Judge(r)
			if v.Limiter != c.want || v.Confidence != c.sure {
				t.Errorf("%s, %s: %v %v", v.Limiter, v.Confidence, v.Shares, v.Evidence)
			}
			if c.want == verdict.Bottleneck && len(v.Candidates) > 0 {
				t.Errorf("candidates %v", v.Candidates)
			}
		})
	}
}
