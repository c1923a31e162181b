package transfer

import (
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Burst is a start of a transfer that was faster than everything after it: a policer's bucket, or slow start before
// the first loss.
type Burst struct {
	End time.Duration // since the first byte
	// SteadyBps is the goodput after it; 0 if the rest was shorter than the burst.
	SteadyBps float64
}

// Burst finds a burst after slow start. Spans last two round trips, and at least a fortieth of the transfer. Each span
// of a burst is BurstFaster than the mean of all later spans and than most of them, so that one stall does not end a
// burst.
func (r *Result) Burst() (b Burst, ok bool) {
	s, settled := r.Startup()
	total, known := r.Received()
	if !settled || !known {
		return Burst{}, false
	}
	all := newCurves(r.CountingEnd())
	span := startupSpan(r, total)
	begun := total.First + s.End
	rates := make([]float64, int((total.Last-begun)/span))
	if len(rates) < threshold.BurstSpans {
		return Burst{}, false
	}
	for i := range rates {
		from := begun + time.Duration(i)*span
		rates[i] = (all.at(from+span) - all.at(from)) / span.Seconds()
	}
	slowest := math.Inf(1)
	for i := range int(float64(len(rates)) * threshold.LatestBurst) {
		slowest = min(slowest, rates[i])
		end := begun + time.Duration(i+1)*span
		rest := (all.at(total.Last) - all.at(end)) / (total.Last - end).Seconds()
		if slowest < threshold.BurstFaster*rest ||
			ratioReaching(rates[i+1:], slowest/threshold.BurstFaster) > threshold.BurstAlsoFast {
			continue
		}
		b = Burst{End: end - total.First}
		ok = true
		if float64(i) < float64(len(rates))*threshold.BurstShare {
			b.SteadyBps = rest * 8
		}
	}
	return b, ok
}

// ratioReaching returns the share of spans that reach a rate.
func ratioReaching(rates []float64, rate float64) float64 {
	n := 0
	for _, r := range rates {
		if r >= rate {
			n++
		}
	}
	return float64(n) / float64(len(rates))
}
