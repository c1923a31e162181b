package live

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// rates returns the rate of all connections together, span by span. It leaves out a last span that is not whole.
func rates(all []*connection, from, to, span time.Duration) (rates []float64) {
	before := 0.0
	for t := from + span; t <= to; t += span {
		sum := 0.0
		for _, c := range all {
			sum += c.arrivingBy(t)
		}
		rates = append(rates, max(sum-before, 0)*8/span.Seconds())
		before = sum
	}
	return rates
}

// bestLasting returns the best rate that two spans in a row reached, without the best twentieth: after a host or a
// device stops for a moment, the delayed data arrives at once.
func bestLasting(rates []float64) float64 {
	pairs := lowerOfPairs(rates)
	if len(pairs) == 0 {
		return 0
	}
	slices.Sort(pairs)
	return pairs[int(float64(len(pairs)-1)*(1-threshold.BestLeftOut.Value))]
}

// lowerOfPairs are the smaller ones of every two rates in a row.
func lowerOfPairs(rates []float64) (pairs []float64) {
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
	i := firstFrom(c.samples, t)
	if i == len(c.samples) {
		return c.delivered[i-1]
	}
	before := 0.0
	at := c.rounds[0].start.At
	if i > 0 {
		before = c.delivered[i-1]
		at = c.samples[i-1].At
	}
	return before + timeShare(t, at, c.samples[i].At)*(c.delivered[i]-before)
}

// timeShare returns how much of the time between two moments had passed at a third one: 1 where there is none.
func timeShare(t, from, to time.Duration) float64 {
	if to <= from {
		return 1
	}
	return max(float64(t-from)/float64(to-from), 0)
}

// arrivingBy is deliveredBy with the arrived part of what one acknowledgement brings next: a slow line takes all the
// time since the last arrival for it. Otherwise three segments count in a time that such a line takes for two and a
// half, and the best of several rates is far above the line's.
func (c *connection) arrivingBy(t time.Duration) float64 {
	i := firstFrom(c.samples, t)
	if i == len(c.samples) {
		return c.delivered[i-1]
	}
	arrived := c.deliveredBy(t)
	before := 0.0
	if i > 0 {
		before = c.delivered[i-1]
	}
	next := i + sort.Search(len(c.samples)-1-i, func(k int) bool { return c.delivered[i+k] > before })
	from := c.rounds[0].start.At
	if before > 0 {
		from = c.samples[sort.SearchFloat64s(c.delivered, before)].At
	}
	part := min(c.delivered[next]-before, float64(int64(threshold.DelayedAckSegments.Value)*c.mss))
	return min(max(arrived, before+timeShare(t, from, c.samples[next].At)*part), c.delivered[next])
}

// arrivals returns the payload that had arrived at each sample.
func arrivals(samples []transfer.Sample, before transfer.Sample, mss int64) []float64 {
	all := make([]float64, len(samples))
	first := before.Arrived(mss)
	most := 0.0
	for i := range samples {
		most = max(most, float64(samples[i].Arrived(mss)-first))
		all[i] = most
	}
	return all
}

// slowStartEnd is when the connection's slow start was over: the congestion window met its
// threshold, something was lost, or two round trips brought little more than the two
// before.
func (c *connection) slowStartEnd(minRTT time.Duration) time.Duration {
	span := max(scale(minRTT, threshold.RoundTrips.Value), threshold.SlowStartSpan.Time())
	from := c.rounds[0].start.At
	for i := range c.samples {
		s := &c.samples[i]
		if s.Ssthresh > 0 && s.Ssthresh <= s.Cwnd || s.Retransmitted > 0 || s.Lost > 0 {
			return s.At
		}
		if s.At < from+2*span {
			continue
		}
		now := c.deliveredBy(s.At)
		then := c.deliveredBy(s.At - span)
		if now-then <= threshold.SlowStartGrows.Value*(then-c.deliveredBy(s.At-2*span)) {
			return s.At - span
		}
	}
	return c.samples[len(c.samples)-1].At
}

// evennessOf returns how evenly data arrives within a round trip: the mean rate as a share of the best tenth of
// stretches of at most half a round trip. A full link delivers without gaps, with any queue. Windows that go out
// in bursts leave it idle in between. It returns 0 if the samples are too far apart. A stretch is long
// enough for the given number of segments on average, and byChance of its segments may be in it by chance.
func (p *path) evennessOf(all []*connection, segments, byChance int) float64 {
	if p.meanRate <= 0 || p.meanRTT <= 0 {
		return 0
	}
	segment := float64(len(all)) * float64(all[0].mss)
	chance := float64(byChance) * segment
	least := seconds(float64(segments) * segment * 8 / p.meanRate)
	most := p.meanRTT / 2
	if least > most {
		return 0
	}
	var rates []float64
	var bytes float64
	var total time.Duration
	from := p.startedAt
	before := deliveredBy(all, from)
	for i := range all[0].samples {
		at := all[0].samples[i].At
		if at < from+least {
			continue
		}
		now := deliveredBy(all, at)
		if at-from <= most {
			rates = append(rates, max(now-before-chance, 0)*8/(at-from).Seconds())
			bytes += now - before
			total += at - from
		}
		from = at
		before = now
	}
	if len(rates) < int(threshold.EvenStretches.Value) {
		return 0
	}
	slices.Sort(rates)
	best := rates[int(float64(len(rates))*threshold.EvenBest.Value)]
	if best <= 0 {
		return 0
	}
	return bytes * 8 / total.Seconds() / best
}
