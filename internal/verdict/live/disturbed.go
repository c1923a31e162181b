package live

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// disturbances are what may have shaped a measurement and is no part of the path or of the
// transfer. Each answers its figures where it was there, else nil, and whether it was
// enough to matter.
var disturbances = []struct {
	code verdict.Code
	of   func(verdict.Verdict, *transfer.Result) (values verdict.Values, matters bool)
}{
	{verdict.HostWasLate, hostWasLate},
	{verdict.MemoryShort, memoryShort},
	{verdict.TestsBeside, testsBeside},
	{verdict.ClockTrouble, clockTrouble},
}

// lessSure takes one step of confidence off a verdict for each disturbance, and tells of it.
func lessSure(v verdict.Verdict, r *transfer.Result) verdict.Verdict {
	for _, d := range disturbances {
		values, matters := d.of(v, r)
		if len(values) == 0 {
			continue
		}
		v.Evidence = append(v.Evidence, verdict.Evidence{Limiter: verdict.Unknown, Code: d.code, Values: values})
		if matters {
			v.Confidence = verdict.Lower(v.Confidence)
		}
	}
	return v
}

// eachEnd calls f for the ends that can be seen, by their parts.
func eachEnd(r *transfer.Result, f func(name string, e *transfer.End)) {
	if e := r.Sender(); e != nil {
		f("sender", e)
	}
	if e := r.Receiver(); e != nil {
		f("receiver", e)
	}
}

// hostWasLate says that a data thread at either end was ready without a core for so long
// that what was measured is partly the host's.
func hostWasLate(v verdict.Verdict, r *transfer.Result) (verdict.Values, bool) {
	values, late := verdict.Values{}, false
	eachEnd(r, func(name string, e *transfer.End) {
		if e.CPU != nil {
			values[name+"_starved_ratio"] = e.CPU.ThreadRunDelay
			late = late || e.CPU.ThreadRunDelay >= threshold.RunDelay
		}
	})
	if !late || v.Limiter == verdict.CPU {
		return nil, false
	}
	return values, true
}

// memoryShort tells of the kernels' shortage of memory at either end: such a kernel closes
// windows and drops what came, as a slow reader, a small window or a lossy path would.
func memoryShort(_ verdict.Verdict, r *transfer.Result) (verdict.Values, bool) {
	values := verdict.Values{}
	eachEnd(r, func(name string, e *transfer.End) {
		if m := e.MemoryPressure; m != nil {
			values[name+"_times"] = float64(m.Times)
			if m.Time > 0 {
				values[name+"_s"] = m.Time.Seconds()
			}
		}
	})
	return values, true
}

// testsBeside tells of other tests that an end carried out meanwhile: they took a part of
// the path, of a queue or of the host. For a moment of the time they hardly matter.
func testsBeside(_ verdict.Verdict, r *transfer.Result) (verdict.Values, bool) {
	values := verdict.Values{}
	length := 0.0
	if received, ok := r.Received(); ok {
		length = received.Duration().Seconds()
	}
	eachEnd(r, func(_ string, e *transfer.End) {
		if b := e.Beside; b != nil && b.Time.Seconds() >= values["beside_s"] {
			values["tests"], values["beside_s"] = float64(b.Tests), b.Time.Seconds()
		}
	})
	return values, values["beside_s"] >= threshold.TellShare*length
}

// clockTrouble tells of a clock that was set during the transfer, and of two ends' clocks
// that do not run at one speed: times and rates of such ends are not each other's.
func clockTrouble(_ verdict.Verdict, r *transfer.Result) (verdict.Values, bool) {
	values := verdict.Values{}
	eachEnd(r, func(name string, e *transfer.End) {
		if e.ClockStep.Abs() >= threshold.ClockStep {
			values[name+"_step_s"] = e.ClockStep.Seconds()
		}
	})
	if math.Abs(r.ClockDrift) >= threshold.ClockDrift {
		values["drift_ratio"] = r.ClockDrift
	}
	return values, true
}
