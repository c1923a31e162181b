package watched

import (
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// reading is one look at a connection.
type reading struct {
	Queues
	Sample transfer.Sample
}

// buffer is a reading of a send buffer of a size, in bytes, and of what is queued in it.
func buffer(size, queued int64) reading {
	return reading{Queues: Queues{SendBuffer: size, SendQueued: queued}}
}

func (r reading) with(s transfer.Sample) reading {
	r.Sample = s
	return r
}

func (r *reading) count(seen *Tally) { seen.Add(&r.Sample, r.Queues, false, 1448) }

// What the readings between two dumps showed of the moment divides what the clocks leave to
// the network.
func TestByCountersByReadings(t *testing.T) {
	ms := time.Millisecond
	sending := func(s *reading) {}
	for _, c := range []struct {
		name    string
		reading reading        // all are alike
		with    func(*reading) // the last one
		want    verdict.Name
		also    []verdict.Name // candidates, at least
	}{
		{"a full buffer, all on its way", buffer(32000, 40000), sending, verdict.SendBuffer, nil},
		{"the same, and a link that may be full", buffer(32000, 40000),
			func(t *reading) { t.Sample.RTT, t.Sample.MinRTT = 90*ms, 40*ms }, verdict.Unknown,
			[]verdict.Name{verdict.SendBuffer, verdict.Bottleneck, verdict.AckPath}},
		{"the same, and something came", buffer(32000, 40000),
			func(t *reading) { t.Sample.Received = 1 }, verdict.Sender, []verdict.Name{verdict.Application, verdict.SendBuffer}},
		{"a buffer with room", buffer(100_000, 20_000), sending, verdict.Application, nil},
		{"one that was never full", buffer(100_000, 60_000), sending, verdict.Application, nil},
		{"less than a segment waits", buffer(100_000, 4000).with(transfer.Sample{NotSent: 1000, InFlight: 1000}), sending,
			verdict.Unknown,
			[]verdict.Name{verdict.NagleDelayedAck}},
		{"a full window behind a queue", buffer(100_000, 100_000).with(transfer.Sample{NotSent: 50_000, SendWnd: 50_000}),
			func(t *reading) {
				t.Sample.RTT, t.Sample.MinRTT, t.Sample.RwndLimited = 500*ms, 40*ms, t.Sample.At
			}, verdict.Unknown, []verdict.Name{verdict.ReceiverWindow, verdict.Bottleneck}},
		{"a buffer that the kernel's clock says is full, behind a queue",
			buffer(100_000, 100_000).with(transfer.Sample{NotSent: 50_000}),
			func(t *reading) {
				t.Sample.RTT, t.Sample.MinRTT, t.Sample.SndbufLimited = 500*ms, 40*ms, t.Sample.At
			}, verdict.Unknown, []verdict.Name{verdict.SendBuffer, verdict.Bottleneck}},
		{"data waits", buffer(100_000, 100_000).with(transfer.Sample{NotSent: 50_000}), sending, verdict.Unknown,
			network},
	} {
		from := transfer.Sample{Have: clocks}
		var seen Tally
		for i := range 4 {
			c.reading.Sample.Have, c.reading.Sample.Cwnd = clocks, 100_000
			c.reading.Sample.At = time.Duration(i+1) * 500 * ms
			c.reading.Sample.Busy, c.reading.Sample.Acked = c.reading.Sample.At, int64(i+1)*50_000
			c.reading.Sample.RTT, c.reading.Sample.MinRTT = 40*ms, 40*ms
			c.reading.count(&seen)
		}
		c.with(&c.reading)
		v := ByCounters(&from, &c.reading.Sample, seen)
		if v.Limiter != c.want || v.Confidence == verdict.High {
			t.Errorf("%s: %s, %s, %v", c.name, v.Limiter, v.Confidence, v.Shares)
		}
		for _, n := range c.also {
			if !slices.Contains(v.Candidates, n) {
				t.Errorf("%s: %s is not a candidate of %v", c.name, n, v.Candidates)
			}
		}
		if told := v.Evidence[0].Values["receiver_ratio"]; (told > 0) != (c.reading.Sample.RwndLimited > 0) {
			t.Errorf("%s: the clocks are told to say that the window held %v of the time", c.name, told)
		}
		sums(t, c.name, v)
	}
}

// Where a small segment waits for an acknowledgement in some readings, what the others show of an idle
// dialogue does not make it the program's.
func TestByCountersNagle(t *testing.T) {
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
