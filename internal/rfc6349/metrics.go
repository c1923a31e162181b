package rfc6349

import (
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// newRun computes the metrics of section 4 for one transfer.
func (t *tester) newRun(d *Direction, test *Test, r *transfer.Result, intervals []transfer.Interval) Outcome {
	received, _ := r.Received()
	run := Outcome{Started: r.Started, Duration: received.Duration(), Bytes: received.Bytes, Opening: received.Opening,
		GoodputBps: received.Bps(), SteadyBps: received.Bps(),
		Verdict: live.Judge(r), Intervals: intervals}
	if startup, ok := r.Startup(); ok {
		run.Startup = startup.End
		run.SteadyBps = startup.SteadyBps
	}
	most := d.MaxTCPBps
	if test.Kind == Both {
		most = d.MaxBesideAcksBps
	}
	if most > 0 {
		run.Ideal = time.Duration(float64(received.Bytes-received.Opening) * 8 / most * float64(time.Second))
		run.Ratio = model.TransferTimeRatio(run.Duration, max(run.Ideal, 1))
		run.SteadyRatio = most / run.SteadyBps
	}
	if sender := r.Sender(); sender != nil {
		run.sent(sender)
		run.roundTrips(sender)
	}
	return run
}

// sent adds up what the sender's kernel counted.
func (r *Outcome) sent(sender *transfer.End) {
	for _, s := range sender.Streams {
		r.Reached += s.SendBuffer.Effective
		if n := len(s.Samples); n > 0 && s.Samples[n-1].Have&transfer.HaveAcked != 0 &&
			s.Samples[n-1].Have&transfer.HaveRetrans != 0 {
			r.Sent += s.Samples[n-1].Sent
			r.Again += s.Samples[n-1].RetransmittedBytes
		}
	}
}

// Efficiency is the TCP Efficiency; ok is false where the sender's kernel did not tell.
func (r *Outcome) Efficiency() (share float64, ok bool) {
	if r.Sent <= 0 {
		return 0, false
	}
	return model.Efficiency(r.Sent, r.Again), true
}

// BufferDelay is the Buffer Delay over an idle round trip; ok is false where the
// sender's kernel told no round trips.
func (r *Outcome) BufferDelay(idle time.Duration) (share float64, ok bool) {
	if r.MeanRTT <= 0 || idle <= 0 {
		return 0, false
	}
	return model.BufferDelay(r.MeanRTT, idle), true
}

// roundTrips takes the mean of each second's samples, or of each tenth of a run below
// 4 s, and of those in equilibrium their mean (section 4.3).
func (r *Outcome) roundTrips(sender *transfer.End) {
	step := time.Second
	if r.Duration < 4*time.Second {
		step = max(r.Duration/10, time.Millisecond)
	}
	type sum struct {
		of time.Duration
		n  int
	}
	var steps []sum
	for i := range sender.Streams {
		s := &sender.Streams[i]
		for _, sample := range s.Samples {
			if sample.Have&transfer.HaveRTT == 0 || sample.RTT <= 0 || sample.At < s.First || sample.At > s.Last {
				continue
			}
			k := int((sample.At - s.First) / step)
			const most = 1e5
			if k >= most {
				break
			}
			for len(steps) <= k {
				steps = append(steps, sum{})
			}
			steps[k].of += sample.RTT
			steps[k].n++
		}
	}
	var all sum
	for k, one := range steps {
		at := time.Duration(k) * step
		if one.n == 0 {
			continue
		}
		mean := one.of / time.Duration(one.n)
		r.RTTs = append(r.RTTs, RTT{at + step/2, mean})
		if at >= r.Startup || k == len(steps)-1 && all.n == 0 {
			all.of += mean
			all.n++
		}
	}
	if all.n > 0 {
		r.MeanRTT = all.of / time.Duration(all.n)
	}
}

// add puts a run to a test and brings its interval up to date.
func (test *Test) add(r Outcome, rtt time.Duration) {
	test.Runs = append(test.Runs, r)
	var rates []float64
	for _, r := range test.Runs {
		rates = append(rates, r.SteadyBps)
	}
	test.Goodput = stats.Estimate(rates, 0.95)
	if len(rates) >= 3 {
		return
	}
	// Too few runs to tell their scatter: the spans of each stand in.
	var spans []float64
	for i := range test.Runs {
		spans = append(spans, test.Runs[i].spans(rtt)...)
	}
	if len(spans) >= 6 {
		within := stats.Estimate(spans, 0.95)
		mid := stats.Middle(rates)
		test.Goodput = stats.Interval{Low: mid * within.Low / within.Mid, Mid: mid, High: mid * within.High / within.Mid}
	}
}

// spans are the rates of about ten spans of equilibrium, two round trips long at least.
func (r *Outcome) spans(rtt time.Duration) (rates []float64) {
	length := max(2*rtt, (r.Duration-r.Startup)/10)
	var bytes int64
	var from time.Duration
	begun := false
	for _, i := range r.Intervals {
		if i.Start < r.Startup {
			continue
		}
		if !begun {
			from = i.Start
			begun = true
		}
		bytes += i.Bytes
		if span := i.End - from; span >= length {
			rates = append(rates, math.Max(float64(bytes)*8/span.Seconds(), 1))
			from = i.End
			bytes = 0
		}
	}
	return rates
}

// Typical is the run with the middle rate; nil if there is none.
func (test *Test) Typical() *Outcome {
	if len(test.Runs) == 0 {
		return nil
	}
	order := make([]*Outcome, len(test.Runs))
	for i := range test.Runs {
		order[i] = &test.Runs[i]
	}
	slices.SortFunc(order, func(a, b *Outcome) int { return int(math.Copysign(1, a.SteadyBps-b.SteadyBps)) })
	return order[len(order)/2]
}

// Test is the direction's test of a kind; nil if there is none. Of windows it is the first.
func (d *Direction) Test(kind Kind) *Test {
	for i := range d.Tests {
		if d.Tests[i].Kind == kind {
			return &d.Tests[i]
		}
	}
	return nil
}
