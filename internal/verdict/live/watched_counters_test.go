package live

import (
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// snapshot is the state of a connection at one moment.
type snapshot struct {
	Queues
	Sample transfer.Sample
}

// buffer returns the snapshot of a send buffer of a size with queued data, both in bytes.
func buffer(size, queued int64) snapshot {
	return snapshot{Queues: Queues{SendBuffer: size, SendQueued: queued}}
}

func (r snapshot) with(s transfer.Sample) snapshot {
	r.Sample = s
	return r
}

func (r *snapshot) count(seen *Tally) { seen.Add(&r.Sample, r.Queues, false, 1448) }

// TestByCounters_Tally checks that the samples between two dumps divide the time that the clocks leave to the network.
func TestByCounters_Tally(t *testing.T) {
	ms := time.Millisecond
	sending := func(s *snapshot) {}
	for _, c := range []struct {
		name     string
		snapshot snapshot        // all are alike
		with     func(*snapshot) // the last one
		want     verdict.Name
		also     []verdict.Name // candidates, at least
	}{
		{"a full buffer, all on its way", buffer(32000, 40000), sending, verdict.SendBuffer, nil},
		{"the same, and a link that may be full", buffer(32000, 40000),
			func(t *snapshot) { t.Sample.RTT, t.Sample.MinRTT = 90*ms, 40*ms }, verdict.Unknown,
			[]verdict.Name{verdict.SendBuffer, verdict.Bottleneck, verdict.AckPath}},
		{"the same, and something came", buffer(32000, 40000),
			func(t *snapshot) { t.Sample.Received = 1 }, verdict.Sender,
			[]verdict.Name{verdict.Application, verdict.SendBuffer}},
		{"a buffer with room", buffer(100_000, 20_000), sending, verdict.Application, nil},
		{"one that was never full", buffer(100_000, 60_000), sending, verdict.Application, nil},
		{"less than a segment waits", buffer(100_000, 4000).with(transfer.Sample{NotSent: 1000, InFlight: 1000}), sending,
			verdict.Unknown,
			[]verdict.Name{verdict.NagleDelayedAck}},
		{"a full window behind a queue", buffer(100_000, 100_000).with(transfer.Sample{NotSent: 50_000, SendWnd: 50_000}),
			func(t *snapshot) {
				t.Sample.RTT, t.Sample.MinRTT, t.Sample.RwndLimited = 500*ms, 40*ms, t.Sample.At
			}, verdict.Unknown, []verdict.Name{verdict.ReceiverWindow, verdict.Bottleneck}},
		{"a buffer that the kernel's clock says is full, behind a queue",
			buffer(100_000, 100_000).with(transfer.Sample{NotSent: 50_000}),
			func(t *snapshot) {
				t.Sample.RTT, t.Sample.MinRTT, t.Sample.SndbufLimited = 500*ms, 40*ms, t.Sample.At
			}, verdict.Unknown, []verdict.Name{verdict.SendBuffer, verdict.Bottleneck}},
		{"data waits", buffer(100_000, 100_000).with(transfer.Sample{NotSent: 50_000}), sending, verdict.Unknown,
			undividedNetwork},
	} {
		from := transfer.Sample{Have: clocks}
		var seen Tally
		for i := range 4 {
			c.snapshot.Sample.Have, c.snapshot.Sample.Cwnd = clocks, 100_000
			c.snapshot.Sample.At = time.Duration(i+1) * 500 * ms
			c.snapshot.Sample.Busy, c.snapshot.Sample.Acked = c.snapshot.Sample.At, int64(i+1)*50_000
			c.snapshot.Sample.RTT, c.snapshot.Sample.MinRTT = 40*ms, 40*ms
			c.snapshot.count(&seen)
		}
		c.with(&c.snapshot)
		v := ByCounters(&from, &c.snapshot.Sample, seen)
		if v.Limiter != c.want || v.Confidence == verdict.High {
			t.Errorf("%s: %s, %s, %v", c.name, v.Limiter, v.Confidence, v.Shares)
		}
		for _, n := range c.also {
			if !slices.Contains(v.Candidates, n) {
				t.Errorf("%s: %s is not a candidate of %v", c.name, n, v.Candidates)
			}
		}
		if ratio := v.Evidence[0].Values["receiver_ratio"]; (ratio > 0) != (c.snapshot.Sample.RwndLimited > 0) {
			t.Errorf("%s: receiver_ratio is %v", c.name, ratio)
		}
		sums(t, c.name, v)
	}
}

// TestByCounters_Nagle checks that idle time in some samples is not the program's if a small segment waits for an
// acknowledgement in others.
func TestByCounters_Nagle(t *testing.T) {
	ms := time.Millisecond
	from := transfer.Sample{Have: clocks}
	var seen Tally
	one := buffer(100_000, 2000)
	for i := range 5 {
		at := time.Duration(i+1) * 500 * ms
		one.Sample = transfer.Sample{At: at, Busy: at, Have: clocks, Cwnd: 15_000, InFlight: 1000, RTT: 100 * ms,
			MinRTT: 100 * ms, Acked: int64(i+1) * 5000, Received: int64(i)}
		if i == 2 {
			one.Sample.NotSent = 1000
		}
		one.count(&seen)
	}
	v := ByCounters(&from, &one.Sample, seen)
	if v.Limiter != verdict.Unknown || !slices.Contains(v.Candidates, verdict.NagleDelayedAck) ||
		!slices.Contains(v.Candidates, verdict.Application) {
		t.Errorf("%s of %v, %v", v.Limiter, v.Shares, v.Candidates)
	}
	sums(t, "Nagle", v)
}
