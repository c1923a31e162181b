package limiter

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// path is what all connections of a transfer together say of the network between the
// two hosts.
type path struct {
	minRTT time.Duration
	// base is the round trip that a full segment takes through an empty queue: the least
	// one, which may be the handshake's small packets', and the segment's own
	// serialisation at the best rate seen.
	base time.Duration
	rtt  time.Duration // mean smoothed round trip once started
	// floor is the same less twice its deviation: what stands in the queue even between
	// two bursts of our own.
	floor   time.Duration
	start   time.Duration // when the transfer began, on the sender's clock
	started time.Duration // when its slow start was over
	span    time.Duration // of one of rates: two round trips
	rates   []float64     // delivered payload of all connections, bit/s, span by span
	first   int           // the first of rates after slow start
	top     float64       // the best rate that lasted two spans, slow start included
	later   float64       // the same once started
	peak    float64       // the very best that lasted two spans
	mean    float64       // bit/s once started
	resent  float64       // retransmitted bytes as a share of all sent
	// evenness is the mean rate as a share of the best within round trips; 0: not known.
	evenness float64
}

// segmentsASpan is how many segments a span should hold, so that one more or less does
// not look like another rate.
const segmentsASpan = 50

// mostSpans bounds the work that one transfer's clock can ask for.
const mostSpans = 10000

func newPath(minRTT time.Duration, all []*connection) *path {
	p := &path{minRTT: minRTT, start: all[0].rounds[0].start.At, started: longest}
	end := time.Duration(0)
	for _, c := range all {
		p.start = min(p.start, c.rounds[0].start.At)
		p.started = min(p.started, c.startedAt)
		end = max(end, c.rounds[len(c.rounds)-1].end.At)
	}
	p.started = min(max(p.started, p.start), end)
	p.span = max(roundTrips*minRTT, shortestRound, (end-p.start)/mostSpans)
	if total := deliveredBy(all, end); total > 0 {
		p.span = max(p.span, scale(end-p.start, min(segmentsASpan*float64(all[0].mss)/total, 0.1)))
	}
	p.rates = together(all, p.start, end, p.span)
	p.first = min(int((p.started-p.start+p.span/2)/p.span), max(len(p.rates)-1, 0))
	fastest := fastestDelivery(all)
	p.top = min(lasting(p.rates), fastest)
	if len(p.rates) > 0 {
		p.later = min(lasting(p.rates[p.first:]), fastest)
		p.peak = slices.Max(inPairs(p.rates))
	}
	p.mean = deliveredBy(all, end) - deliveredBy(all, p.started)
	if end > p.started {
		p.mean *= 8 / (end - p.started).Seconds()
	}
	p.base = minRTT
	if p.top > 0 {
		p.base += seconds(float64(all[0].mss) * 8 / p.top)
	}
	p.account(all)
	p.evenness = p.evennessOf(all)
	return p
}

// account sums retransmissions and the round trip over all connections.
func (p *path) account(all []*connection) {
	var sent, resent int64
	var rtt, floor, n float64
	for _, c := range all {
		last := &c.samples[len(c.samples)-1]
		sent += max(last.Sent, last.Acked)
		resent += max(last.RetransmittedBytes, 0)
		if last.RetransmittedBytes == 0 {
			resent += last.Retransmitted * c.mss
		}
		for i := range c.samples {
			s := &c.samples[i]
			if s.Have&transfer.HaveRTT != 0 && (s.At > p.started || i == len(c.samples)-1) {
				rtt += s.RTT.Seconds()
				floor += max(s.RTT-2*s.RTTVar, p.minRTT).Seconds()
				n++
			}
		}
	}
	if sent > 0 {
		p.resent = min(float64(resent)/float64(sent), 1)
	}
	if n > 0 {
		p.rtt, p.floor = seconds(rtt/n), seconds(floor/n)
	}
}

// queueing is how much of the empty path's round trip the standing queue adds: 0.5 is
// half as much again.
func (p *path) queueing() float64 {
	if p.base <= 0 || p.floor <= p.base {
		return 0
	}
	return float64(p.floor-p.base) / float64(p.base)
}

// standing says whether a queue stands in the path: the round trip stays above the empty
// path's even between bursts.
func (p *path) standing() bool { return p.queueing() >= standingQueue }

// level is the mean rate as a share of the best that lasted.
func (p *path) level() float64 {
	if p.top <= 0 {
		return 0
	}
	return p.mean / p.top
}

// uneven says whether data came in bursts with the link idle in between.
func (p *path) uneven() bool { return p.evenness > 0 && p.evenness < evenRate }

// full says whether the link was: a queue stands in it and the rate is steady, from
// round trip to round trip or at least within each. Where a queue is longer than our own
// bursts could make it and nothing is lost, only the link itself can be unsteady.
func (p *path) full() bool {
	const longQueue, unsteady, veryUnsteady = 0.5, 0.7, 0.6
	switch level := p.level(); {
	case !p.standing() || p.uneven():
		return false
	case level >= flatRate:
		return true
	case p.evenness >= evenRate:
		return level >= veryUnsteady
	default:
		return p.queueing() >= longQueue && level >= unsteady && p.resent <= losing
	}
}

// allows is what a window gives over the empty path, in bit/s.
func (p *path) allows(window int64) float64 {
	if p.base <= 0 {
		return 0
	}
	return float64(window) * 8 / p.base.Seconds()
}

// leastRTT is the smallest round trip that any of an end's connections saw, 0 if none.
func leastRTT(e *transfer.End) (least time.Duration) {
	for _, stream := range e.Streams {
		for i := range stream.Samples {
			s := &stream.Samples[i]
			rtt := s.MinRTT
			if s.Have&transfer.HaveMinRTT == 0 {
				rtt = s.RTT
			}
			if s.Have&(transfer.HaveMinRTT|transfer.HaveRTT) != 0 && rtt > 0 && rtt < longest && (least == 0 || rtt < least) {
				least = rtt
			}
		}
	}
	return least
}

// together is the rate of all connections at once, span by span; a last span that is
// not whole is left out.
func together(all []*connection, from, to, span time.Duration) (rates []float64) {
	before := 0.0
	for t := from + span; t <= to; t += span {
		sum := deliveredBy(all, t)
		rates = append(rates, max(sum-before, 0)*8/span.Seconds())
		before = sum
	}
	return rates
}

// lasting is the rate that two spans in a row reached, all but the best twentieth of
// them left out: after a host or a device stood still for a moment, what it held back
// comes at once.
func lasting(rates []float64) float64 {
	pairs := inPairs(rates)
	if len(pairs) == 0 {
		return 0
	}
	slices.Sort(pairs)
	return pairs[(len(pairs)-1)*19/20]
}

// inPairs are the smaller ones of every two rates in a row.
func inPairs(rates []float64) (pairs []float64) {
	for i := 1; i < len(rates); i++ {
		pairs = append(pairs, min(rates[i-1], rates[i]))
	}
	if len(rates) == 1 {
		return rates[:1:1]
	}
	return pairs
}

// fastestDelivery is the sum of the best delivery rates that the kernel saw (tcp_info's
// delivery_rate), which counts what arrived within a round trip.
func fastestDelivery(all []*connection) (sum float64) {
	for _, c := range all {
		best := 0.0
		for i := range c.samples {
			best = max(best, c.samples[i].DeliveryBps)
		}
		if !c.has(transfer.HaveRate) || best <= 0 {
			return math.Inf(1)
		}
		sum += best
	}
	return sum
}

func deliveredBy(all []*connection, t time.Duration) (sum float64) {
	for _, c := range all {
		sum += c.deliveredBy(t)
	}
	return sum
}

// deliveredBy is linear between samples.
func (c *connection) deliveredBy(t time.Duration) float64 {
	i, _ := slices.BinarySearchFunc(c.samples, t, func(s transfer.Sample, t time.Duration) int { return cmp.Compare(s.At, t) })
	if i == len(c.samples) {
		return c.delivered[i-1]
	}
	before, at := 0.0, c.rounds[0].start.At
	if i > 0 {
		before, at = c.delivered[i-1], c.samples[i-1].At
	}
	share := max(float64(t-at)/float64(c.samples[i].At-at), 0)
	return before + share*(c.delivered[i]-before)
}

// arrivals counts payload that had arrived at each sample, whatever order it came in: of
// the bytes sent once, those neither in flight nor held lost. The acknowledged ones
// alone stand still at a hole and leap when it is repaired.
func arrivals(samples []transfer.Sample, before transfer.Sample, mss int64) []float64 {
	all := make([]float64, len(samples))
	most := 0.0
	for i := range samples {
		s := &samples[i]
		arrived := s.Acked - before.Acked
		if s.Have&(transfer.HaveRetrans|transfer.HaveInFlight) == transfer.HaveRetrans|transfer.HaveInFlight && s.Sent > 0 {
			arrived = max(arrived, s.Sent-before.Sent-s.RetransmittedBytes-s.InFlight-s.Lost*mss)
		}
		most = max(most, float64(arrived))
		all[i] = most
	}
	return all
}

// opened is when the connection's slow start was over: the congestion window met its
// threshold, something was lost, or two round trips brought little more than the two
// before.
func (c *connection) opened(minRTT time.Duration) time.Duration {
	const grows = 1.3
	span := max(roundTrips*minRTT, 10*time.Millisecond)
	from := c.rounds[0].start.At
	for i := range c.samples {
		s := &c.samples[i]
		if s.Ssthresh > 0 && s.Ssthresh <= s.Cwnd || s.Retransmitted > 0 || s.Lost > 0 {
			return s.At
		}
		if s.At < from+2*span {
			continue
		}
		now, then := c.deliveredBy(s.At), c.deliveredBy(s.At-span)
		if now-then < grows*(then-c.deliveredBy(s.At-2*span)) {
			return s.At - span
		}
	}
	return c.samples[len(c.samples)-1].At
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
