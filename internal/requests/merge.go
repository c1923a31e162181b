package requests

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/turns"
)

// Taken are the turns of all streams, before the far end's part is known.
type Taken struct {
	transfer.Load
	Exchanges turns.Exchanges
	Streams   []transfer.Stream // each one's first connection
	path      turns.Path
}

// collect merges the workers' recorders.
func collect(workers []*worker, elapsed time.Duration) *Taken {
	t := &Taken{Load: transfer.Load{Elapsed: elapsed}}
	all := hdrhistogram.New(1, maxDuration, digits)
	var every uint32 = 1
	var responded int64
	for _, w := range workers {
		every = max(every, w.recorder.every)
	}
	for _, w := range workers {
		r := &w.recorder
		all.Merge(r.histogram)
		t.Exchanges.Unanswered += r.unanswered
		t.Failed += r.failed
		t.Connections += r.connections
		responded += r.responded
		t.Exchanges.Max = max(t.Exchanges.Max, r.longest)
		t.SlowLeftOut += r.slowLeftOut
		t.Exchanges.Slow = append(t.Exchanges.Slow, r.slow...)
		for i := range r.sample {
			if r.sample[i].Number%every == 0 { // evenly over all streams
				t.Exchanges.Sample = append(t.Exchanges.Sample, r.sample[i])
			}
		}
		if least := int64(r.leastRoundTrip); least > 0 && (t.path.RoundTrip == 0 || least < t.path.RoundTrip) {
			t.path.RoundTrip = least
		}
		t.path.Smoothed = max(t.path.Smoothed, int64(r.smoothed))
		if mss := r.seen.MSS; mss > 0 && (t.path.Segment == 0 || mss < t.path.Segment) {
			t.path.Segment = mss
		}
	}
	x := &t.Exchanges
	x.Count = all.TotalCount()
	t.ResponseBytes = responded / max(x.Count, 1)
	x.P50 = all.ValueAtQuantile(50)
	x.P90 = all.ValueAtQuantile(90)
	x.P99 = all.ValueAtQuantile(99)
	for _, bar := range all.Distribution() {
		if bar.Count > 0 {
			x.Distribution = turns.AddToBins(x.Distribution, bar.From, bar.Count)
		}
	}
	t.RoundTrip = time.Duration(t.path.RoundTrip)
	return t
}

// With returns the load with what the far end reported of its exchanges; nil: nothing.
func (t *Taken) With(far *transfer.Responses, spec transfer.Requests) *transfer.Load {
	type id struct {
		stream uint16
		number uint32
	}
	reported := map[id]*transfer.Exchange{}
	if far != nil {
		t.FarKnown = true
		t.SlowLeftOut += far.LeftOut
		for i := range far.Exchanges {
			x := &far.Exchanges[i]
			reported[id{x.Stream, x.Number}] = x
		}
	}
	for _, list := range [][]turns.Exchange{t.Exchanges.Sample, t.Exchanges.Slow} {
		for i := range list {
			x := &list[i]
			x.Request = int64(spec.RequestBytes)
			x.Response = t.ResponseBytes
			if far := reported[id{x.Stream, x.Number}]; far != nil {
				x.Thinking = int64(far.Thinking)
				x.LostSYNACKs = far.SYNACKs
				x.Server = turns.Repaired{Segments: far.Retransmitted, Timeouts: far.Timeouts}
			}
		}
	}
	t.Profile = t.Exchanges.Profile(t.path)
	return &t.Load
}
