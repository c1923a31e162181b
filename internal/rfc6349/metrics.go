package rfc6349

import (
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// newRun computes the metrics of section 4 for one transfer.
func (t *tester) newRun(d *Direction, test *Test, r *transfer.Result, intervals []transfer.Interval) Outcome {
	received, _ := r.Received()
	run := Outcome{Duration: units.Duration(received.Duration()), Bytes: received.Bytes,
		OpeningBytes: received.FirstReadBytes, GoodputBps: received.Bps(), SteadyBps: received.Bps(), Verdict: live.Judge(r),
		Intervals: intervals}
	run.Limiter = run.Verdict.Limiter
	if !r.Started.IsZero() {
		at := r.Started.UTC().Round(time.Millisecond)
		run.StartedAt = &at
	}
	if startup, ok := r.Startup(); ok {
		run.Startup = units.Duration(startup.End)
		run.SteadyBps = startup.SteadyBps
	}
	most := d.MaxTCPBps
	if test.Kind == Both {
		most = d.MaxBidirectionalBps
	}
	if most > 0 {
		ideal := time.Duration(float64(received.Bytes-received.FirstReadBytes) * 8 / most * float64(time.Second))
		run.Ideal = units.Duration(ideal)
		run.TimeRatio = model.TransferTimeRatio(received.Duration(), max(ideal, 1))
		if run.SteadyBps > 0 {
			run.SteadyRatio = most / run.SteadyBps
		}
	}
	if sender := r.Sender(); sender != nil {
		countSent(&run, sender)
		roundTrips(&run, sender)
		if run.RTTMean > 0 && t.rtt() > 0 {
			delay := model.BufferDelay(time.Duration(run.RTTMean), t.rtt())
			run.BufferDelay = &delay
		}
	}
	return run
}

// countSent adds up the counters of the sender's kernel.
func countSent(r *Outcome, sender *transfer.End) {
	var sum record.RFC6349Sender
	for _, s := range sender.Streams {
		r.InFlightBytes += s.SendBuffer.Effective
		if n := len(s.Samples); n > 0 && s.Samples[n-1].Have&transfer.HaveAcked != 0 &&
			s.Samples[n-1].Have&transfer.HaveRetrans != 0 {
			sum.SentBytes += s.Samples[n-1].Sent
			sum.RetransmittedBytes += s.Samples[n-1].RetransmittedBytes
		}
	}
	if sum.SentBytes > 0 {
		sum.Efficiency = model.Efficiency(sum.SentBytes, sum.RetransmittedBytes)
		r.RFC6349Sender = &sum
	}
}

// roundTrips takes the mean of each second's samples, or of each tenth of a run below
// 4 s, and of those in equilibrium their mean (section 4.3).
func roundTrips(r *Outcome, sender *transfer.End) {
	step := time.Second
	if length := time.Duration(r.Duration); length < 4*time.Second {
		step = max(length/10, time.Millisecond)
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
		r.RoundTrips = append(r.RoundTrips, flow.Point{At: int64(at + step/2), Value: int64(mean)})
		if units.Duration(at) >= r.Startup || k == len(steps)-1 && all.n == 0 {
			all.of += mean
			all.n++
		}
	}
	if all.n > 0 {
		r.RTTMean = units.Duration(all.of / time.Duration(all.n))
	}
}

// add puts a run to a test and brings its interval and its limiter up to date.
func add(test *Test, r Outcome, rtt time.Duration) {
	test.Runs = append(test.Runs, r)
	i := steady(test.Runs, rtt)
	test.Goodput = i
	test.GoodputBps = nil
	test.CI95Bps = nil
	if i.Mid > 0 && !math.IsInf(i.Mid, 0) {
		test.GoodputBps = &i.Mid
	}
	if test.GoodputBps != nil && !math.IsInf(i.High, 0) {
		test.CI95Bps = &[2]float64{i.Low, i.High}
	}
	typical := test.Typical()
	test.Limiter = typical.Limiter
	test.Subtype = typical.Verdict.Subtype
	test.Confidence = typical.Verdict.Confidence
}

// steady returns the 95 % interval of the runs' goodput in equilibrium.
func steady(runs []Outcome, rtt time.Duration) stats.Interval {
	var rates, spans []float64
	for i := range runs {
		rates = append(rates, runs[i].SteadyBps)
		spans = append(spans, spanRates(&runs[i], rtt)...)
	}
	if len(rates) >= 3 || len(spans) < 6 {
		return stats.Estimate(rates, 0.95)
	}
	// Too few runs for their scatter: use the spans of each run.
	within := stats.Estimate(spans, 0.95)
	mid := stats.Middle(rates)
	return stats.Interval{Low: mid * within.Low / within.Mid, Mid: mid, High: mid * within.High / within.Mid}
}

// efficiency returns the TCP Efficiency; nil if the sender's kernel does not report its counters.
func efficiency(r *Outcome) *float64 {
	if r.RFC6349Sender == nil {
		return nil
	}
	return &r.Efficiency
}

// spanRates are the rates of about ten spans of equilibrium, two round trips long at least.
func spanRates(r *Outcome, rtt time.Duration) (rates []float64) {
	length := max(2*rtt, time.Duration(r.Duration-r.Startup)/10)
	var bytes int64
	var from time.Duration
	begun := false
	for _, i := range r.Intervals {
		if units.Duration(i.Start) < r.Startup {
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
