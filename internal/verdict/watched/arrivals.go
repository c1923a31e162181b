package watched

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// receiveRTTs returns the receiver's estimates of the round trip while data came without pauses, else nil. A pausing
// sender lengthens the estimate as a queue does, so both look the same then. Without timestamps the kernel estimates by
// whole windows, which is too long.
func (c *Connection) receiveRTTs() []time.Duration {
	n := len(c.Of)
	if n < threshold.WatchedSamples || c.Handshake == nil || !c.Handshake.Timestamps ||
		c.Of[0].Have&transfer.HaveReceived == 0 {
		return nil
	}
	span := c.Of[n-1].At - c.Of[0].At
	segments := float64(c.Of[n-1].Received-c.Of[0].Received) / float64(c.Handshake.SegmentSize())
	if span <= 0 || segments < threshold.SureSegments.Value {
		return nil
	}
	apart := time.Duration(float64(span) / segments)
	gapMax := max(threshold.ArrivalGap, threshold.ArrivalSegments*apart)
	estimates := make([]time.Duration, 0, n)
	steady := 0
	for i := range c.Queues {
		if q := &c.Queues[i]; q.ReceiveRTT > 0 {
			estimates = append(estimates, q.ReceiveRTT)
			if q.SinceData <= gapMax {
				steady++
			}
		}
	}
	if len(estimates) < n || float64(steady) < threshold.SteadyArrivals*float64(n) {
		return nil
	}
	return slices.Clip(estimates)
}
