package live

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// ackQueueShare returns the share of the queueing delay in which acknowledgements wait on their way back. It is 0
// unless one connection without loss was seen at both ends. The ACK lag is the time from the receiver's count of
// arrived bytes to the sender's. Its growth above the least lag is compared with the growth of the RTT at the same
// moments, so that the ends' clocks may differ by any constant.
func (a *analysis) ackQueueShare() float64 {
	if len(a.connections) != 1 || a.path.retransmitRatio > threshold.Losing.Value || !hasStandingQueue.IsTrue(a.whole()) {
		return 0
	}
	c := a.connections[0]
	if c.receiver == nil {
		return 0
	}
	lags, every := c.ackLags()
	return ackShare(lags, every, a.path.baseRTT)
}

// ackLag is the time from the arrival of data to its acknowledgement at the sender, by clocks that differ by a
// constant, and the smoothed RTT at that time.
type ackLag struct{ lag, rtt time.Duration }

// ackShare returns the mean delay of acknowledgements above the least one, as a share of the queueing delay. It
// returns 0 if that is not known, because the receiver was sampled too rarely (every) or the delay is too short.
func ackShare(lags []ackLag, every, base time.Duration) float64 {
	if len(lags) < int(threshold.AckLags.Value) {
		return 0
	}
	least := lags[0].lag
	sum := time.Duration(0)
	rtt := time.Duration(0)
	for i := 1; i+1 < len(lags); i++ {
		// A single sample may be off: its thread had to wait for a core.
		a := lags[i-1].lag
		b := lags[i].lag
		c := lags[i+1].lag
		lag := max(min(a, b), min(max(a, b), c))
		sum += lag
		rtt += lags[i].rtt - base
		if i == 1 || lag < least {
			least = lag
		}
	}
	n := time.Duration(len(lags) - 2)
	waited := sum/n - least
	if waited < max(threshold.AckLagResolved.Time(), every) {
		return 0
	}
	return min(ratio(waited, rtt/n), 1)
}

// ackLags are the times between bytes' arrival by the receiver's clock and their
// acknowledgement's by the sender's, at those samples of the sender that saw one come, and
// how far apart the receiver was usually sampled. A sample that saw none would show how long the
// sender had been waiting, and where either end was not sampled for a while, when it
// happened is not known.
func (c *connection) ackLags() (lags []ackLag, every time.Duration) {
	_, arrived := during(c.receiver)
	every = usualStep(arrived)
	usual := usualStep(c.samples)
	next := 1
	for i := 1; i < len(c.samples); i++ {
		before := &c.samples[i-1]
		s := &c.samples[i]
		if s.Have&transfer.HaveAcked == 0 {
			return nil, 0
		}
		if s.Acked <= before.Acked || s.At-before.At > scale(usual, threshold.AckLagGap.Value) {
			continue
		}
		acked := s.Acked - 1 // tcp_input.c, tcp_snd_una_update, counts the SYN where this end connected
		for next < len(arrived) && arrived[next].Received < acked {
			next++
		}
		if next >= len(arrived) {
			break
		}
		a := &arrived[next-1]
		b := &arrived[next]
		if a.Have&b.Have&transfer.HaveReceived == 0 || a.Received > acked || b.Received <= a.Received ||
			b.At-a.At > scale(every, threshold.AckLagGap.Value) {
			continue
		}
		part := float64(acked-a.Received) / float64(b.Received-a.Received)
		lags = append(lags, ackLag{s.At - a.At - scale(b.At-a.At, part), s.RTT})
	}
	return lags, every
}

// usualStep is the median time between two samples.
func usualStep(samples []transfer.Sample) time.Duration {
	var steps []time.Duration
	for i := 1; i < len(samples); i++ {
		steps = append(steps, samples[i].At-samples[i-1].At)
	}
	if len(steps) == 0 {
		return 0
	}
	slices.Sort(steps)
	return steps[len(steps)/2]
}

// scatter is the standard deviation divided by the mean, of the rate of acknowledgements and of the rate of the data
// that they acknowledge. Zeros: not known.
type scatter struct{ acks, data float64 }

// ackScatter returns the scatter after slow start of a single connection with little loss, seen by its sender alone.
func (a *analysis) ackScatter() (s scatter) {
	c := a.connections[0]
	if a.receiver != nil || len(a.connections) != 1 || !c.has(transfer.HaveSegmentsIn|transfer.HaveAcked) ||
		a.path.retransmitRatio > threshold.Losing.Value {
		return s
	}
	last := c.samples[len(c.samples)-1].At
	span := max((last-a.path.startedAt)/time.Duration(threshold.SteadySpans.Value+1),
		scale(a.path.baseRTT, threshold.EvenedOut.Value))
	var acks, data []float64
	var from *transfer.Sample
	hole := false // a hole delays cumulative acknowledgements, and the sample after its repair has them all
	for i := range c.samples {
		now := &c.samples[i]
		before := hole
		hole = now.Recovering || now.Lost > 0
		switch {
		case now.At < a.path.startedAt:
		case from == nil || hole || before || now.Retransmitted > from.Retransmitted:
			from = now
		case now.At-from.At >= span:
			took := (now.At - from.At).Seconds()
			acks = append(acks, float64(now.SegmentsIn-from.SegmentsIn)/took)
			data = append(data, float64(now.Acked-from.Acked)/took)
			from = now
		}
	}
	if len(acks) < int(threshold.SteadySpans.Value) {
		return s
	}
	variation := func(rates []float64) float64 {
		mean, deviation := stats.MeanDev(rates)
		if mean <= 0 {
			return 0
		}
		return deviation / mean
	}
	return scatter{variation(acks), variation(data)}
}
