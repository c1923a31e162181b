package limiter

// Prediction is what a transfer would give once its limiter is gone.
type Prediction struct {
	Fix     string
	LowBps  float64
	HighBps float64 // 0 when AtLeast: nothing in the capture shows a higher bound
	AtLeast bool
}

// predict takes the least of the caps that remain. The path's capacity is only known
// where a queue, a loss or a burst showed it; else the best that was seen is a lower bound.
func (t *timeline) predict(v Verdict) *Prediction {
	fix := Remedy(v)
	if v.Limiter == Sender && len(v.Candidates) > 0 {
		fix = Remedy(Verdict{Limiter: v.Candidates[0]})
	}
	if fix == "" || v.Limiter == Unknown || v.Limiter == Mixed || v.Limiter == Bottleneck || t.goodput <= 0 {
		return nil
	}
	// Taking the limiter's share of the time away, at the pace of the rest, is the least
	// that follows from its being one.
	p := &Prediction{Fix: fix, LowBps: 1.1 * t.goodput * 8, AtLeast: true}
	ceiling := 0.0
	if v.Limiter != ReceiverWindow && v.Limiter != ReceiverApplication && t.base > 0 {
		ceiling = float64(t.d.WindowMax) / t.base
	}
	if t.queueing || t.probed {
		if ceiling == 0 || t.capacity < ceiling {
			ceiling = t.capacity
		}
	}
	if ceiling > 1.1*t.goodput {
		p.AtLeast, p.HighBps = false, ceiling*8
	}
	return p
}
