package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Prediction is what a transfer would give once its limiter is gone.
type Prediction struct {
	Limiter verdict.Name // the limiter to remove; one of the candidates where the verdict is Sender
	LowBps  float64
	HighBps float64 // 0 when AtLeast: nothing in the capture shows a higher bound
	AtLeast bool
}

// predict takes the least of the caps that remain. How fast the path is was only shown
// where it was overloaded: by a queue while more was sent than came out. Else what
// follows is a lower bound: by its definition, a limiter's removal gives a tenth more, and
// the pace at which what was outstanding at once got through can be had for longer.
func (t *timeline) predict(v verdict.Verdict) *Prediction {
	fixed := v.Limiter // of a sender's candidates none is known to be the one
	// A policer's rate stays.
	none := v.Subtype == verdict.LostSYNs || v.Subtype == verdict.Policer ||
		fixed == verdict.Unknown || fixed == verdict.Mixed || fixed == verdict.Bottleneck
	if none || t.d.Bytes < int64(threshold.TransferSegments.Value)*int64(t.d.MSS) || t.goodput <= 0 {
		return nil
	}
	low := threshold.CauseFactor.Value * t.goodput
	ceiling := t.overloaded()
	if v.Limiter != verdict.Congestion {
		low = max(low, threshold.PaceReached.Value*t.pathPace)
	}
	if v.Limiter != verdict.ReceiverWindow && v.Limiter != verdict.ReceiverApplication && t.baseRTT > 0 {
		// A window far above what was used says nothing: it would have grown.
		if most := float64(t.d.WindowMax) / t.baseRTT; most < threshold.WindowSaysNothing.Value*t.goodput &&
			(ceiling == 0 || most < ceiling) {
			ceiling = most
		}
	}
	if bound := t.blockRate(); bound > 0 {
		low = min(low, bound)
		ceiling = min(ceiling, bound)
	}
	if ceiling*threshold.CeilingAbove.Value <= low {
		return &Prediction{Limiter: fixed, LowBps: low * 8, AtLeast: true}
	}
	reached := ceiling
	if t.pathPace > 0 { // a window shows nothing of the path behind it
		reached = min(reached, t.pathPace)
	}
	return &Prediction{Limiter: fixed, LowBps: max(low, threshold.CeilingReached.Value*reached) * 8,
		HighBps: ceiling * threshold.CeilingAbove.Value * 8}
}

// overloaded returns the rate of the fastest round in which the path visibly gave all it had, bytes/s; 0 when there
// were too few. While the window was full, the rate shows how fast the receiver made room. Losses make it less, and the
// acknowledgement that fills the hole makes it more, a round later. Data outstanding at once may have come faster than
// any whole round.
func (t *timeline) overloaded() (most float64) {
	seen := 0
	repairing := false
	for i := range t.d.Slices {
		s := &t.d.Slices[i]
		full := float64(s.Clock[flow.Full]+s.Clock[flow.Closed]) >
			threshold.WindowFullShare.Value*float64(s.End-s.Start)
		lost := s.Losses > 0 || s.Retransmitted > 0
		if !full && !lost && !repairing && t.queued(s) && s.PeakSent > threshold.Overloaded.Value*s.PeakAcked {
			most = max(most, s.PeakAcked)
			seen++
		}
		repairing = lost
	}
	if seen < int(threshold.MinSegments.Value) {
		return 0
	}
	return max(most, t.pathPace)
}
