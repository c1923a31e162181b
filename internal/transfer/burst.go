package transfer

import (
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Burst is what a path let through faster than all that followed: a policer's bucket, or what
// slow start carried before the first loss.
type Burst struct {
	End time.Duration // since the first byte
	// SteadyBps is the goodput after it; 0 where that lasted for less than the burst and tells none.
	SteadyBps float64
}

// Burst finds a burst after slow start: the spans, of two round trips and a fortieth of the
// transfer at least, that are each a quarter faster than the mean of all after them, and than most
// of those: a rate that stalls once is no burst's end.
func (r *Result) Burst() (b Burst, ok bool) {
	s, settled := r.Startup()
	total, known := r.Received()
	if !settled || !known {
		return Burst{}, false
	}
	all := newCurves(r.Counting())
	span := max(threshold.StartupRounds*r.LeastRTT(), total.Duration()/40)
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
	for i := range len(rates) * 3 / 4 {
		slowest = min(slowest, rates[i])
		end := begun + time.Duration(i+1)*span
		rest := (all.at(total.Last) - all.at(end)) / (total.Last - end).Seconds()
		if slowest < threshold.BurstFaster*rest ||
			asFast(rates[i+1:], slowest/threshold.BurstFaster) > threshold.BurstAlsoFast {
			continue
		}
		b = Burst{End: end - total.First}
		ok = true
		if i < len(rates)/2 {
			b.SteadyBps = rest * 8
		}
	}
	return b, ok
}

// asFast is the share of spans that reach a rate.
func asFast(rates []float64, rate float64) float64 {
	n := 0
	for _, r := range rates {
		if r >= rate {
			n++
		}
	}
	return float64(n) / float64(len(rates))
}
