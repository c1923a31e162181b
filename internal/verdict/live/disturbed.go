package live

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// disturbances are events outside the path and the transfer that may have affected a measurement. Each function
// returns the values of its disturbance, or nil if there was none, and by how many steps it lowers the confidence.
var disturbances = []struct {
	code verdict.Code
	of   func(verdict.Verdict, *transfer.Result) (values verdict.Values, steps int)
}{
	{verdict.RunqueueWaited, runqueueWaited},
	{verdict.MemoryPressure, memoryPressure},
	{verdict.ConcurrentTests, concurrentTests},
	{verdict.ClockTrouble, clockTrouble},
}

// lowerConfidence lowers the confidence of a verdict for each disturbance, and adds the disturbance to the evidence.
func lowerConfidence(v verdict.Verdict, r *transfer.Result) verdict.Verdict {
	for _, d := range disturbances {
		values, steps := d.of(v, r)
		if len(values) == 0 {
			continue
		}
		v.Evidence = append(v.Evidence, verdict.Evidence{Limiter: verdict.Unknown, Code: d.code, Values: values})
		for range steps {
			v.Confidence = verdict.Lower(v.Confidence)
		}
	}
	return v
}

// ShortOfMemory lowers the confidence of a verdict on one direction of a watched connection if its host's TCP was
// short of memory meanwhile, and adds the shortage to the evidence. A nil m means no shortage.
func ShortOfMemory(v verdict.Verdict, d transfer.Direction, m *transfer.MemoryPressure) verdict.Verdict {
	if m == nil {
		return v
	}
	return lowerConfidence(v, &transfer.Result{Near: &transfer.End{MemoryPressure: m}, Spec: transfer.Spec{Direction: d}})
}

// eachEnd calls f with the name and the data of each end that can be seen.
func eachEnd(r *transfer.Result, f func(name string, e *transfer.End)) {
	if e := r.Sender(); e != nil {
		f("sender", e)
	}
	if e := r.Receiver(); e != nil {
		f("receiver", e)
	}
}

// runqueueWaited says that a data thread at either end was ready without a core for so long
// that what was measured is partly the host's: one step, or two where that was most of the time.
func runqueueWaited(v verdict.Verdict, r *transfer.Result) (verdict.Values, int) {
	values := verdict.Values{}
	eachEnd(r, func(name string, e *transfer.End) {
		if e.CPU != nil {
			values[name+"_starved_ratio"] = e.CPU.RunqueueWait
		}
	})
	switch starved := maxRunqueueWait(r); {
	case starved < threshold.RunDelay.Value || v.Limiter == verdict.CPU:
		return nil, 0
	case starved < threshold.StarvedHost.Value:
		return values, 1
	}
	return values, 2
}

// maxRunqueueWait is the largest share of the time that a data thread of either end was ready
// without a core.
func maxRunqueueWait(r *transfer.Result) (most float64) {
	eachEnd(r, func(_ string, e *transfer.End) {
		if e.CPU != nil {
			most = max(most, e.CPU.RunqueueWait)
		}
	})
	return most
}

// isStarved reports whether an end had no core for so much of the time that losses and an unsteady rate may be the
// host's doing: acknowledgements wait there until timers fire. It returns false if as much is lost while both ends
// have a core.
func (a *analysis) isStarved() bool {
	if maxRunqueueWait(a.result) < threshold.StarvedHost.Value {
		return false
	}
	var rounds int
	var arrived, resent float64
	for _, c := range a.connections {
		for i := range c.rounds {
			r := &c.rounds[i]
			delay := max(r.advance(runqueueClock), c.readerSpent(r, runqueueClock))
			if r.start.At < c.startedAt || ratio(delay, r.length) >= threshold.RunDelay.Value {
				continue
			}
			rounds++
			arrived += r.bps / 8 * r.length.Seconds()
			resent += float64((r.end.Retransmitted - r.start.Retransmitted) * c.mss)
		}
	}
	return rounds < int(threshold.MinRounds.Value) || resent <= threshold.Losing.Value*arrived
}

// memoryPressure returns the kernels' shortage of memory at either end. Such a kernel closes windows and drops
// segments, which looks like a slow reader, a small window or a lossy path.
func memoryPressure(_ verdict.Verdict, r *transfer.Result) (verdict.Values, int) {
	values := verdict.Values{}
	eachEnd(r, func(name string, e *transfer.End) {
		if m := e.MemoryPressure; m != nil {
			values[name+"_times"] = float64(m.Times)
			if m.Time > 0 {
				values[name+"_s"] = m.Time.Seconds()
			}
		}
	})
	return values, 1
}

// concurrentTests returns the other tests that ran at an end meanwhile. They used a part of the path, of a queue or
// of the host. Short overlaps hardly matter.
func concurrentTests(_ verdict.Verdict, r *transfer.Result) (verdict.Values, int) {
	values := verdict.Values{}
	length := 0.0
	if received, ok := r.Received(); ok {
		length = received.Duration().Seconds()
	}
	eachEnd(r, func(_ string, e *transfer.End) {
		if b := e.ConcurrentTests; b != nil && b.Time.Seconds() >= values["beside_s"] {
			values["tests"] = float64(b.Tests)
			values["beside_s"] = b.Time.Seconds()
		}
	})
	if values["beside_s"] < threshold.EvidenceShare.Value*length {
		return values, 0
	}
	return values, 1
}

// clockTrouble returns clock steps during the transfer and the drift between the two ends' clocks. Times and rates
// of such ends cannot be compared.
func clockTrouble(_ verdict.Verdict, r *transfer.Result) (verdict.Values, int) {
	values := verdict.Values{}
	eachEnd(r, func(name string, e *transfer.End) {
		if e.ClockStep.Abs() >= threshold.ClockStep.Time() {
			values[name+"_step_s"] = e.ClockStep.Seconds()
		}
	})
	if math.Abs(r.ClockDrift) >= threshold.ClockDrift.Value {
		values["drift_ratio"] = r.ClockDrift
	}
	return values, 1
}
