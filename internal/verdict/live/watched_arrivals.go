package live

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// receiveRTTs returns the receiver's estimates of the round trip while data came without pauses, else nil. A pausing
// sender lengthens the estimate as a queue does: pauses of half of its growth explain it. Without timestamps the kernel
// estimates by whole windows, which is too long.
func (c *Watched) receiveRTTs() []time.Duration {
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
	// A full link carries full segments; smaller ones are a program's writes, and a pause may precede each.
	if packets := c.Of[n-1].SegmentsIn - c.Of[0].SegmentsIn; c.Of[0].Have&transfer.HaveSegmentsIn != 0 &&
		segments < threshold.FullArrivals*float64(packets) {
		return nil
	}
	apart := time.Duration(float64(span) / segments)
	estimates := make([]time.Duration, 0, n)
	for i := range c.Queues {
		if rtt := c.Queues[i].ReceiveRTT; rtt > 0 {
			estimates = append(estimates, rtt)
		}
	}
	if len(estimates) < n {
		return nil
	}
	usual := slices.Sorted(slices.Values(estimates))[n/2]
	gapMax := min(max(threshold.ArrivalGap, threshold.ArrivalSegments*apart),
		time.Duration(threshold.PausedGrowth*float64(usual-c.Of[n-1].MinRTT)))
	steady := 0
	for i := range c.Queues {
		if c.Queues[i].SinceData <= gapMax {
			steady++
		}
	}
	if float64(steady) < threshold.SteadyArrivals*float64(n) {
		return nil
	}
	return estimates
}
