package transfer

import (
	"math"
	"time"
)

const (
	// faster is how much faster than all that follows the first of a transfer has to be for a
	// burst: less is what rates vary by.
	faster = 1.25
	// fewestSpans are the spans after slow start that a burst is looked for in.
	fewestSpans = 8
)

// Burst is what a path let through faster than all that followed: a policer's bucket, or what
// slow start carried before the first loss.
type Burst struct {
	End time.Duration // since the first byte
	// SteadyBps is the goodput after it; 0 where that lasted for less than the burst and tells none.
	SteadyBps float64
}

// Burst finds a burst after slow start: the spans, of two round trips and a fortieth of the
// transfer at least, that are each a quarter faster than the mean of all after them.
func (r *Result) Burst() (b Burst, ok bool) {
	s, settled := r.Startup()
	total, known := r.Received()
	if !settled || !known {
		return Burst{}, false
	}
	all := newCurves(r.Counting())
	span := max(startupRounds*r.LeastRTT(), total.Duration()/40)
	begun := total.First + s.End
	spans := int((total.Last - begun) / span)
	if spans < fewestSpans {
		return Burst{}, false
	}
	last, slowest := all.at(total.Last), math.Inf(1)
	for i := range spans * 3 / 4 {
		from, to := begun+time.Duration(i)*span, begun+time.Duration(i+1)*span
		slowest = min(slowest, (all.at(to)-all.at(from))/span.Seconds())
		rest := (last - all.at(to)) / (total.Last - to).Seconds()
		if slowest < faster*rest {
			continue
		}
		b, ok = Burst{End: to - total.First}, true
		if i < spans/2 {
			b.SteadyBps = rest * 8
		}
	}
	return b, ok
}
