package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// timerOrLine reports whether blocks waited for their only acknowledgement for most of the time, and the receiver's
// delayed-ACK timer as well as a slow line may have taken that long.
func (t *timeline) timerOrLine() bool {
	return !t.losing && !t.blockwise && t.d.UnclearWaits >= int64(threshold.MinRounds.Value) &&
		float64(t.d.UnclearWaited)/1e9 > threshold.HeadlineShare.Value*t.length
}

// timerInTrips reports whether the receiver's delayed-ACK timer may be a part of each round trip: the handshake is not
// in the capture, and the sender waited for the only acknowledgement of each few segments.
func (t *timeline) timerInTrips() bool {
	d := t.d
	return !t.c.SYN && !t.c.SYNACK && !t.losing && d.RTTMin-d.LoopMin >= int64(threshold.DelayedAckLeast.Value) &&
		d.MaxOut < int64(threshold.OneAckSegments.Value)*int64(max(d.MSS, 536)) && 2*d.Restarts > int64(t.rounds) &&
		d.Acks <= d.Restarts+int64(threshold.MinSegments.Value)
}
