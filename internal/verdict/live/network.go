package live

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// networkFacts are what the verdict on the network reads besides the path.
type networkFacts struct {
	cwndGrows      bool  // the congestion windows grew in the second half
	cwndRegrows    bool  // in congestion avoidance, after a loss or a mark
	avoidsFrom     int64 // ssthresh of senders in congestion avoidance without a loss or a mark, bytes; 0: other senders
	markedTrips    int   // round trips in which the receiver reported new congestion marks (ECN)
	lossyTrips     int   // round trips in which segments were retransmitted
	hasTimeouts    bool  // a retransmission timeout was seen
	isModelPaced   bool  // the congestion control is BBR
	lossDispersion float64
	losses         lossEvents // all
	laterLosses    lossEvents // in congestion avoidance
	delivery       firstDelivery
	receiverSeen   bool    // the receiver's counters show in which direction the queue is
	ackQueue       float64 // the share of the queueing delay in which acknowledgements waited
	ackRates       scatter
	isStarved      bool // an end had no core most of the time, and nothing shows loss while both had one
	ackedWindow    ackedWindow
}

func (a *analysis) networkFacts() networkFacts {
	marked := a.trips(func(s *transfer.Sample) int64 { return s.DeliveredCE })
	lossy := a.trips(func(s *transfer.Sample) int64 { return s.Retransmitted })
	return networkFacts{cwndGrows: a.cwndGrows(), cwndRegrows: a.cwndRegrows(),
		avoidsFrom: a.avoidsFrom(), markedTrips: marked, lossyTrips: lossy,
		hasTimeouts: a.hasTimeouts(), isModelPaced: a.connections[0].isModelPaced(), lossDispersion: a.lossDispersion(),
		losses: a.lossEvents(false), laterLosses: a.lossEvents(true), delivery: a.firstDelivery(),
		receiverSeen: a.receiver != nil, ackQueue: a.ackQueueShare(), ackRates: a.ackScatter(), isStarved: a.isStarved(),
		ackedWindow: a.ackedWindow()}
}

// cwndGrows reports whether the congestion windows grew in the second half of the transfer.
func (a *analysis) cwndGrows() bool {
	var middle, last int64
	for _, c := range a.connections {
		middle += c.samples[len(c.samples)/2].Cwnd
		last += c.samples[len(c.samples)-1].Cwnd
	}
	return float64(last) >= threshold.StillOpening.Value*float64(middle)
}

// trips returns the number of round trips in which a counter of the senders' samples grew. A sender reduces its
// congestion window at most once in each (RFC 3168, 6.1.2).
func (a *analysis) trips(counter func(*transfer.Sample) int64) (n int) {
	trip := max(supportedRTT(a.sender), a.path.minRTT)
	for _, c := range a.connections {
		last := -trip - 1
		for i := 1; i < len(c.samples); i++ {
			s := &c.samples[i]
			if counter(s) > counter(&c.samples[i-1]) && s.At-last > trip {
				last = s.At
				n++
			}
		}
	}
	return n
}

// cwndRegrows reports whether the congestion windows were in congestion avoidance after a loss or a congestion mark
// (RFC 5681, 3.1; RFC 3168, 6.1.2), in which they grow by about a segment a round trip.
func (a *analysis) cwndRegrows() bool {
	for _, c := range a.connections {
		s := &c.samples[len(c.samples)/2]
		if s.Retransmitted+s.DeliveredCE == 0 && !a.lostBefore() || s.Ssthresh <= 0 || s.Cwnd < s.Ssthresh {
			return false
		}
	}
	return len(a.connections) > 0
}

// avoidsFrom returns the largest ssthresh, in bytes, of senders that are all in congestion avoidance from the first
// sample on, though nothing was lost or marked. It returns 0 if one of them is not. HyStart++ (RFC 9406) sets ssthresh
// later.
func (a *analysis) avoidsFrom() (ssthresh int64) {
	for _, c := range a.connections {
		s := &c.samples[len(c.samples)/2]
		last := &c.samples[len(c.samples)-1]
		if c.samples[0].Ssthresh <= 0 || s.Cwnd < s.Ssthresh || last.Retransmitted+last.DeliveredCE > 0 || a.lostBefore() {
			return 0
		}
		ssthresh = max(ssthresh, c.samples[0].Ssthresh)
	}
	return ssthresh
}

// lostBefore reports whether a watched connection had retransmitted before it was watched.
func (a *analysis) lostBefore() bool { return a.watched != nil && a.watched.lossBefore }

// queueBeforeLoss returns the queueing delay of the few packets that any link queues before it drops.
func (p *path) queueBeforeLoss() time.Duration {
	return seconds(threshold.QueueBeforeLoss.Value * threshold.PacketBytes.Value * 8 / p.lastingRateStarted)
}

// hasTimeouts reports whether a retransmission timeout was seen.
func (a *analysis) hasTimeouts() bool {
	for _, c := range a.connections {
		for i := range c.samples {
			if c.samples[i].Have&transfer.HaveRecovery != 0 && c.samples[i].Timeouts > 0 {
				return true
			}
		}
	}
	return false
}
