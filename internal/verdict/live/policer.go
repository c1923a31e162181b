package live

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// lossDispersion returns the variance of the retransmissions in each round divided by their mean: 1 for single random
// losses (Poisson), and about the number lost at once for losses in bursts. 0 is not known. It leaves out slow start,
// which overshoots on any path, and transfers too short to distinguish a steady rate from a slow recovery.
func (a *analysis) lossDispersion() float64 {
	var n, sum, squares float64
	var seen time.Duration
	for _, c := range a.connections {
		if !c.has(transfer.HaveRetrans) {
			return 0
		}
		for i := range c.rounds {
			r := &c.rounds[i]
			if r.start.At < c.startedAt {
				continue
			}
			lost := float64(r.end.Retransmitted - r.start.Retransmitted)
			n = n + 1
			sum = sum + lost
			squares = squares + lost*lost
			seen += r.length
		}
	}
	if n < threshold.DispersionRounds.Value || sum <= 0 ||
		seen < time.Duration(len(a.connections))*threshold.PolicedTime.Time() {
		return 0
	}
	mean := sum / n
	return (squares/n - mean*mean) / mean
}

// lossEvents are the losses of a transfer, each with the losses that follow it within two round trips.
type lossEvents struct {
	count int
	// queue is how much the round trip had grown when an event began: the median.
	queue time.Duration
	// segments is the mean number of segments of an event.
	segments float64
	// windows are the congestion windows in bytes at which events began, from the first time on that no segment was lost
	// for SettledTrips.
	windows []int64
}

// lossEvents returns the events in congestion avoidance, or all of them: slow start overshoots by as much as its window
// on any path.
func (a *analysis) lossEvents(inAvoidance bool) lossEvents {
	base := max(supportedRTT(a.sender), a.path.minRTT)
	var queues []time.Duration
	var windows []int64
	lost := int64(0)
	for _, c := range a.connections {
		if !c.has(transfer.HaveRetrans | transfer.HaveRTT) {
			return lossEvents{}
		}
		last := -2*base - 1 // of the event before
		counts := false
		settled := false // no loss followed the first ones for SettledTrips
		for i := 1; i < len(c.samples); i++ {
			before := &c.samples[i-1]
			now := &c.samples[i]
			if now.Retransmitted <= before.Retransmitted {
				continue
			}
			if now.At-last > 2*base {
				settled = settled || last > 0 && now.At-last > scale(base, threshold.SettledTrips.Value)
				counts = !inAvoidance || before.At > a.path.startedAt && before.Cwnd >= before.Ssthresh
				if counts {
					queues = append(queues, max(before.RTT, now.RTT)-base)
				}
				if counts && settled {
					windows = append(windows, before.Cwnd)
				}
			}
			if counts {
				lost += now.Retransmitted - before.Retransmitted
			}
			last = now.At
		}
	}
	if len(queues) == 0 {
		return lossEvents{}
	}
	slices.Sort(queues)
	return lossEvents{count: len(queues), queue: max(queues[len(queues)/2], 0),
		segments: float64(lost) / float64(len(queues)), windows: windows}
}

// windowSpread returns the largest of the windows as a multiple of the smallest; 0: fewer than PolicedLosses.
func (e *lossEvents) windowSpread() float64 {
	if len(e.windows) < int(threshold.PolicedLosses.Value) {
		return 0
	}
	return float64(slices.Max(e.windows)) / float64(max(slices.Min(e.windows), 1))
}

// time returns how long the segments of an event take at the best rate that lasted after slow start; 0: not known.
func (e *lossEvents) time(p *path) time.Duration {
	if e.count == 0 || p.lastingRateStarted <= 0 {
		return 0
	}
	return seconds(e.segments * threshold.PacketBytes.Value * 8 / p.lastingRateStarted)
}

// firstDelivery is the kernel's best delivery rate until the first losses end, and of the later ones the best without
// the best twentieth, in bit/s; 0: not known.
type firstDelivery struct{ first, later float64 }

func (a *analysis) firstDelivery() (d firstDelivery) {
	c := a.connections[0]
	if len(a.connections) > 1 || !c.has(transfer.HaveRate|transfer.HaveRetrans) {
		return firstDelivery{}
	}
	trip := max(supportedRTT(a.sender), a.path.minRTT)
	end := threshold.MaxTime.Time() // of the first losses
	var later []float64
	for i := 1; i < len(c.samples); i++ {
		s := &c.samples[i]
		if s.Retransmitted > c.samples[i-1].Retransmitted && (end == threshold.MaxTime.Time() || s.At <= end+2*trip) {
			end = s.At
		}
		switch {
		case end == threshold.MaxTime.Time() || s.At <= end+trip:
			d.first = max(d.first, s.DeliveryBps)
		case s.At > end+scale(trip, threshold.SettledTrips.Value):
			later = append(later, s.DeliveryBps)
		}
	}
	if len(later) == 0 {
		return firstDelivery{}
	}
	slices.Sort(later)
	d.later = later[int(float64(len(later)-1)*(1-threshold.BestLeftOut.Value))]
	return d
}
