package live

import (
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
		{"a full window, sampled beside its beat", 16000, 16000, 37 * time.Millisecond, verdict.ReceiverWindow},
		{"a full window, sampled rarely", 16000, 16000, 100 * time.Millisecond, verdict.ReceiverWindow},
		{"a third of the window", 48000, 16000, 5 * time.Millisecond, verdict.Unknown},
		{"a third of the window, sampled beside its beat", 48000, 16000, 37 * time.Millisecond, verdict.Unknown},
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
