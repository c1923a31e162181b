package live

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// path describes the network between the two hosts by all connections of a transfer together. Rates are of all
// connections' delivered payload in bit/s; 0 is not known.
type path struct {
	startedAt time.Duration // end of slow start, on the sender's clock

	minRTT time.Duration
	// baseRTT is the round trip of a full segment through an empty queue: minRTT, which may be that of the handshake's
	// small packets, and the serialisation of a segment at the best rate.
	baseRTT time.Duration
	meanRTT time.Duration // mean srtt after slow start
	// standingRTT is the mean of srtt - 2 rttvar, less the delay of aggregated acknowledgements: the queue that remains
	// between two bursts.
	standingRTT    time.Duration
	queuedRatio    float64 // share of the samples with a standing queue
	queueDrained   bool    // the queue was often empty and the rate then lower: losses shrank the windows of a full link
	rttJitterRatio float64 // of a watched connection: standard deviation of srtt / (meanRTT - minRTT)

	meanRate           float64 // after slow start
	lastingRate        float64 // the best that lasted
	lastingRateStarted float64 // the best that lasted after slow start
	peakRate           float64 // the best of two spans in a row
	linkHeadroom       float64 // least rate of the link / lastingRateStarted

	evenness               float64 // mean rate / best tenth within round trips
	evennessByDeliveryRate bool    // evenness is by the kernel's delivery rates, which a full link delivers at
	evennessShortWindows   float64 // evenness by stretches of few segments, corrected for chance
	arrivalVariation       float64 // coefficient of variation of the bytes in half a round trip

	retransmitRatio float64 // retransmitted bytes / bytes sent
	dsackRatio      float64 // share of the retransmitted segments that had arrived, where reordering was seen
}

// newPath measures the path of a transfer by all of its connections.
func newPath(minRTT time.Duration, all []*connection) *path {
	p := &path{minRTT: minRTT, startedAt: threshold.MaxTime.Time()}
	start := threshold.MaxTime.Time()
	end := time.Duration(0)
	for _, c := range all {
		start = min(start, c.rounds[0].start.At)
		end = max(end, c.rounds[len(c.rounds)-1].end.At)
		p.startedAt = min(p.startedAt, c.startedAt)
	}
	p.startedAt = min(max(p.startedAt, start), end)
	span := max(scale(minRTT, threshold.RoundTrips.Value), threshold.ShortestRound.Time(),
		(end-start)/time.Duration(threshold.MaxSpans.Value))
	if total := deliveredBy(all, end); total > 0 {
		span = max(span, scale(end-start,
			min(threshold.SegmentsPerSpan.Value*float64(all[0].mss)/total, threshold.MaxSpan.Value)))
	}
	if rates := rates(all, start, end, span); len(rates) > 0 {
		fastest := fastestDelivery(all)
		first := min(int((p.startedAt-start+span/2)/span), len(rates)-1)
		p.lastingRate = min(bestLasting(rates), fastest)
		p.lastingRateStarted = min(bestLasting(rates[first:]), fastest)
		p.peakRate = slices.Max(lowerOfPairs(rates))
	}
	p.meanRate = deliveredBy(all, end) - deliveredBy(all, p.startedAt)
	if end > p.startedAt {
		p.meanRate *= 8 / (end - p.startedAt).Seconds()
	}
	p.baseRTT = minRTT
	if p.lastingRate > 0 {
		p.baseRTT += min(seconds(float64(all[0].mss)*8/p.lastingRate), all[0].segmentTimeMax(minRTT))
	}
	p.addCounters(all)
	p.meanRTT = max(p.meanRTT, p.fullWindowTrip(all))
	if p.meanRTT > 0 { // no round trip under load is shorter than the empty path's
		p.baseRTT = max(p.minRTT, min(p.baseRTT, p.meanRTT))
	}
	p.evenness = p.evennessOf(all, int(threshold.EvenSegments.Value), 0)
	p.evennessShortWindows = p.evennessOf(all, 0, int(threshold.ByChance.Value))
	p.arrivalVariation = p.arrivalVariationOf(all)
	p.linkHeadroom = p.linkHeadroomOf(all)
	p.queueDrained = p.queueDrains(all)
	return p
}

// addCounters sums retransmissions and round trips over all connections.
func (p *path) addCounters(all []*connection) {
	var sent, retransmittedBytes, retransmitted, dsacks, reordered int64
	var rtt, standing, queued, n float64
	for _, c := range all {
		last := &c.samples[len(c.samples)-1]
		sent += max(last.Sent, last.Acked)
		retransmittedBytes += max(last.RetransmittedBytes, 0)
		if last.RetransmittedBytes == 0 {
			retransmittedBytes += last.Retransmitted * c.mss
		}
		retransmitted += last.Retransmitted
		dsacks += last.DSACKDups
		reordered += last.ReordSeen
		aggregation := p.ackAggregationDelay(c, len(all))
		for i := range c.samples {
			s := &c.samples[i]
			if s.Have&transfer.HaveRTT != 0 && (s.At > p.startedAt || i == len(c.samples)-1) {
				rtt += s.RTT.Seconds()
				least := max(s.RTT-2*s.RTTVar-aggregation, p.minRTT)
				standing += least.Seconds()
				if least >= scale(p.baseRTT, 1+threshold.StandingQueue.Value) {
					queued++
				}
				n++
			}
		}
	}
	if n > 0 {
		p.meanRTT = seconds(rtt / n)
		p.standingRTT = seconds(standing / n)
		p.queuedRatio = queued / n
	}
	if sent > 0 {
		p.retransmitRatio = min(float64(retransmittedBytes)/float64(sent), 1)
	}
	switch spurious := float64(dsacks) / float64(max(retransmitted, 1)); {
	// Packets that the network duplicates cause DSACKs too, but no reordering.
	case reordered >= int64(threshold.ReorderedSegments.Value):
		p.dsackRatio = min(spurious, 1)
	// A timer repeated segments whose acknowledgements were late, which costs no cwnd (RFC 8985, 7.4).
	case spurious >= threshold.NeedlessRatio.Value && spurious <= 1:
		p.retransmitRatio = 0
	}
}

// fullWindowTrip returns the time in which one window arrives, if it was full most of the time and so few segments
// arrived that srtt is still nearer to the handshake's RTT; else 0.
func (p *path) fullWindowTrip(all []*connection) time.Duration {
	c := all[0]
	acked := c.samples[len(c.samples)-1].Acked
	if len(all) != 1 || c.windowFullRatio < threshold.MostlyWaiting.Value || p.meanRate <= 0 ||
		acked >= int64(threshold.TransferSegments.Value)*c.mss {
		return 0
	}
	return seconds(float64(c.window(&c.rounds[len(c.rounds)/2])) * 8 / p.meanRate)
}

// ackAggregationDelay returns how much longer the segments of one acknowledgement take to arrive than two do (RFC
// 5681, 4.2), for one of n connections. In a window of fewer than four segments the delay also contains the wait for
// the second of two. The measured round trip is that of the first segment (tcp_input.c, tcp_clean_rtx_queue) and
// includes this delay: a receiver that reads slowly acknowledges a dozen segments at once. If the receive window was
// not full, a link released the segments in a batch, and the delay is 0.
func (p *path) ackAggregationDelay(c *connection, n int) time.Duration {
	if p.meanRate <= 0 || c.windowFullRatio < threshold.AlsoFull.Value {
		return 0
	}
	inTime := 2.0 // segments
	if w := c.largestWindow(); w > 0 && float64(w) < 2*threshold.DelayedAckSegments.Value*float64(c.mss) {
		inTime = 1
	}
	return seconds(max(c.segmentsPerAck(p)-inTime, 0) * float64(c.mss) * 8 * float64(n) / p.meanRate)
}

// queueRatio returns the standing queue as a share of the base RTT.
func (p *path) queueRatio() float64 {
	if p.baseRTT <= 0 || p.standingRTT <= p.baseRTT {
		return 0
	}
	return float64(p.standingRTT-p.baseRTT) / float64(p.baseRTT)
}

// utilization returns the mean rate as a share of the best one that lasted; 0: not known.
func (p *path) utilization() float64 {
	if p.lastingRate <= 0 {
		return 0
	}
	return p.meanRate / p.lastingRate
}

// hasQueueIn reports whether a queue was in the path in one round of one of n connections.
func (p *path) hasQueueIn(c *connection, r *round, n int) bool {
	standing := mean(r.samples, func(s *transfer.Sample) float64 { return (s.RTT - 2*s.RTTVar).Seconds() }) -
		p.ackAggregationDelay(c, n).Seconds()
	return standing >= (1+threshold.StandingQueue.Value)*p.baseRTT.Seconds()
}

// isFullIn reports whether the link was full in one round of one of n connections.
func (p *path) isFullIn(c *connection, r *round, n int) bool {
	return c.has(transfer.HaveRTT) && p.hasQueueIn(c, r, n) && r.bps*float64(n) >= threshold.FlatRate.Value*p.lastingRate
}

// queueDrains compares the rounds with a queue and those without, after slow start.
func (p *path) queueDrains(all []*connection) bool {
	var with, without struct{ took, bytes float64 }
	for _, c := range all {
		for i := range c.rounds {
			r := &c.rounds[i]
			if r.start.At < p.startedAt || !c.has(transfer.HaveRTT) {
				continue
			}
			of := &without
			if p.hasQueueIn(c, r, len(all)) {
				of = &with
			}
			of.took += r.length.Seconds()
			of.bytes += r.bps * r.length.Seconds()
		}
	}
	return p.retransmitRatio > 0 && with.took > 0 &&
		without.took >= threshold.QueueDrained.Value*(with.took+without.took) &&
		without.bytes*with.took < threshold.ClearlyUneven.Value*with.bytes*without.took
}

// rateAtBaseRTT returns what a window gives at the base RTT, in bit/s.
func (p *path) rateAtBaseRTT(window int64) float64 {
	if p.baseRTT <= 0 {
		return 0
	}
	return float64(window) * 8 / p.baseRTT.Seconds()
}

// rateAtMeanRTT returns what a window gives at the mean RTT, in bit/s.
func (p *path) rateAtMeanRTT(window int64) float64 {
	if p.meanRTT <= 0 {
		return p.rateAtBaseRTT(window)
	}
	return float64(window) * 8 / p.meanRTT.Seconds()
}

// minRTTOf is the smallest round trip that any of an end's connections saw, 0 if none that
// can be true.
func minRTTOf(e *transfer.End) time.Duration {
	if least := e.MinRTT(); least < threshold.MaxTime.Time() {
		return least
	}
	return 0
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
