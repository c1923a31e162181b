package limiter

import "github.com/fullpipe-net/fullpipe/internal/flow"

// Prediction is what a transfer would give once its limiter is gone.
type Prediction struct {
	Fix     string
	LowBps  float64
	HighBps float64 // 0 when AtLeast: nothing in the capture shows a higher bound
	AtLeast bool
}

// predict takes the least of the caps that remain. How fast the path is was only shown
// where it was overloaded: by a queue while more was sent than came out. Else what
// follows is a lower bound: by its definition, a limiter's removal gives a tenth more, and
// the pace at which what was outstanding at once got through can be had for longer.
func (t *timeline) predict(v Verdict) *Prediction {
	fix := Remedy(v)
	if v.Limiter == Sender && len(v.Candidates) > 0 {
		fix = Remedy(Verdict{Limiter: v.Candidates[0]})
	}
	const few = 20 // segments: a conversation, not a transfer
	if fix == "" || t.d.Bytes < few*int64(t.d.MSS) || v.Limiter == Unknown || v.Limiter == Mixed || v.Limiter == Bottleneck || t.goodput <= 0 {
		return nil
	}
	const gain, paced, reached, above = 1.1, 0.6, 0.7, 1.05
	low, ceiling := gain*t.goodput, 0.0
	if v.Limiter != Sender { // its own queue looks like the path's
		ceiling = t.overloaded()
	}
	if v.Limiter != Congestion {
		low = max(low, paced*t.link)
	}
	if v.Limiter != ReceiverWindow && v.Limiter != ReceiverApplication && t.base > 0 {
		// A window far above what was used says nothing: it would have grown.
		if most := float64(t.d.WindowMax) / t.base; most < 3*t.goodput && (ceiling == 0 || most < ceiling) {
			ceiling = most
		}
	}
	if ceiling*above <= low {
		return &Prediction{Fix: fix, LowBps: low * 8, AtLeast: true}
	}
	return &Prediction{Fix: fix, LowBps: max(low, reached*ceiling) * 8, HighBps: ceiling * above * 8}
}

// overloaded is the fastest round in which the path visibly gave all it had, bytes/s; 0
// when there were too few. While the window was full, what came out says how fast the
// receiver made room, and where segments were lost, it is less for that. What was
// outstanding at once may have come faster than any whole round.
func (t *timeline) overloaded() (most float64) {
	const much, few = 0.1, 3
	seen := 0
	for i := range t.d.Slices {
		s := &t.d.Slices[i]
		held := float64(s.Clock[flow.Full]+s.Clock[flow.Closed]) > much*float64(s.End-s.Start)
		lost := s.Losses > 0 || s.Retransmitted > 0
		if !held && !lost && t.queued(s) && s.PeakSent > 1.1*s.PeakAcked {
			most = max(most, s.PeakAcked)
			seen++
		}
	}
	if seen < few {
		return 0
	}
	return max(most, t.link)
}
