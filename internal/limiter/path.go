package limiter

import (
	"cmp"
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
	base    time.Duration
	rtt     time.Duration // mean smoothed round trip once settled
	rates   []float64     // acknowledged payload of all connections, bit/s, for each span of two round trips
	settled int           // the first of rates after slow start
	top     float64       // the best rate that lasted two spans, once settled
	burst   float64       // the best of all rates
	mean    float64       // bit/s once settled
	goodput float64       // bit/s from the first to the last byte
	resent  float64       // retransmitted bytes as a share of all sent
}

func newPath(r *transfer.Result, minRTT time.Duration, all []*connection) *path {
	p := &path{minRTT: minRTT}
	if got, ok := r.Received(); ok {
		p.goodput = got.Bps()
	}
	p.rates = together(all, max(roundTrips*minRTT, shortestRound))
	if len(p.rates) == 0 {
		return p
	}
	p.burst = slices.Max(p.rates)
	p.settled = settling(p.rates)
	steady := p.rates[p.settled:]
	for i, v := range steady {
		p.mean += v / float64(len(steady))
		next := steady[min(i+1, len(steady)-1)]
		p.top = max(p.top, min(v, next))
	}
	p.base = minRTT
	if p.burst > 0 {
		p.base += seconds(float64(all[0].mss) * 8 / p.burst)
	}
	p.account(all)
	return p
}

// account sums retransmissions and the round trip over all connections.
func (p *path) account(all []*connection) {
	var sent, resent int64
	var weighted, weight float64
	for _, c := range all {
		last := c.rounds[len(c.rounds)-1].end
		sent += max(last.Sent, last.Acked)
		resent += last.RetransmittedBytes
		if last.RetransmittedBytes == 0 {
			resent += last.Retransmitted * c.mss
		}
		for i := range c.rounds {
			if c.has(transfer.HaveRTT) && (i >= p.settled || i == len(c.rounds)-1) {
				weighted += mean(c.rounds[i].samples, func(s *transfer.Sample) float64 { return s.RTT.Seconds() })
				weight++
			}
		}
	}
	if sent > 0 {
		p.resent = float64(resent) / float64(sent)
	}
	if weight > 0 {
		p.rtt = seconds(weighted / weight)
	}
}

// queueing is how much of the empty path's round trip the standing queue adds: 0.5 is
// half as much again.
func (p *path) queueing() float64 {
	if p.base <= 0 || p.rtt <= p.base {
		return 0
	}
	return float64(p.rtt-p.base) / float64(p.base)
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

// mostSpans bounds the work that one transfer's clock can ask for.
const mostSpans = 10000

// together is the rate of all connections at once, span by span; a last span that is
// not whole is left out.
func together(all []*connection, span time.Duration) (rates []float64) {
	from, to := all[0].rounds[0].start.At, time.Duration(0)
	for _, c := range all {
		from = min(from, c.rounds[0].start.At)
		to = max(to, c.rounds[len(c.rounds)-1].end.At)
	}
	span = max(span, (to-from)/mostSpans)
	before := 0.0
	for t := from + span; t <= to; t += span {
		sum := 0.0
		for _, c := range all {
			sum += c.ackedAt(t)
		}
		rates = append(rates, (sum-before)*8/span.Seconds())
		before = sum
	}
	return rates
}

// ackedAt is what was acknowledged by then, linear between samples.
func (c *connection) ackedAt(t time.Duration) float64 {
	i, _ := slices.BinarySearchFunc(c.samples, t, func(s transfer.Sample, t time.Duration) int { return cmp.Compare(s.At, t) })
	if i == len(c.samples) {
		return float64(c.samples[i-1].Acked)
	}
	before := c.rounds[0].start
	if i > 0 {
		before = c.samples[i-1]
	}
	share := max(float64(t-before.At)/float64(c.samples[i].At-before.At), 0)
	return float64(before.Acked) + share*float64(c.samples[i].Acked-before.Acked)
}

// settling finds the first span that is no longer starting: at least 0.8 of the median
// of all that follow. Of a transfer that never settles it is the last quarter.
func settling(rates []float64) int {
	for i := range rates[:1+len(rates)*3/4] {
		if i < len(rates) && rates[i] >= 0.8*median(rates[i:]) {
			return i
		}
	}
	return len(rates) * 3 / 4
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
