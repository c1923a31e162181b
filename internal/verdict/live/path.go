package live

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
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
	// floor is the same less twice its deviation, and less what acknowledgements waited for their
	// segments: what stands in the queue even between two bursts of our own.
	floor   time.Duration
	started time.Duration // when slow start was over, on the sender's clock

	// Rates are of all connections' delivered payload, bit/s.
	mean  float64 // once started
	top   float64 // the best that lasted, slow start included
	later float64 // the best that lasted once started
	peak  float64 // the very best of two spans in a row

	queued float64 // the share of samples whose own floor shows a standing queue
	// wavering is the deviation of the round trips of a watched connection as a share of what
	// they wait beyond the least one; 0 where it is not known.
	wavering float64
	byRates  bool    // evenness is by the kernel's delivery rates: a link that is full delivers at its rate
	evenness float64 // the mean rate as a share of the best within round trips; 0: not known
	coarse   float64 // the same by stretches of few segments, of which some may have come by chance
	ripple   float64 // how far what arrives in half a round trip scatters; 0: not known
	spare    float64 // how many times the mean rate the link gives at the least; 0: not known
	resent   float64 // retransmitted bytes as a share of all sent
	// ebbed: the queue was gone for much of the time, and a clear part of the rate with it. The link was full, as
	// after slow start, until losses brought the windows below what it carries.
	ebbed bool
	// needless is the share of the segments that were sent again that had arrived, where segments
	// overtook each other; 0: none, or the kernel does not tell.
	needless float64
}

func newPath(minRTT time.Duration, all []*connection) *path {
	p := &path{minRTT: minRTT, started: threshold.LongestTime}
	start := threshold.LongestTime
	end := time.Duration(0)
	for _, c := range all {
		start = min(start, c.rounds[0].start.At)
		end = max(end, c.rounds[len(c.rounds)-1].end.At)
		p.started = min(p.started, c.startedAt)
	}
	p.started = min(max(p.started, start), end)
	span := max(threshold.RoundTrips*minRTT, threshold.ShortestRound, (end-start)/threshold.MostSpans)
	if total := deliveredBy(all, end); total > 0 {
		span = max(span, scale(end-start, min(threshold.SegmentsASpan*float64(all[0].mss)/total, threshold.SpanMost)))
	}
	if rates := together(all, start, end, span); len(rates) > 0 {
		fastest := fastestDelivery(all)
		first := min(int((p.started-start+span/2)/span), len(rates)-1)
		p.top = min(lasting(rates), fastest)
		p.later = min(lasting(rates[first:]), fastest)
		p.peak = slices.Max(inPairs(rates))
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
	if p.rtt > 0 { // no round trip under load is shorter than the empty path's
		p.base = max(p.minRTT, min(p.base, p.rtt))
	}
	p.evenness = p.evennessOf(all, threshold.EvenSegments, 0)
	p.coarse = p.evennessOf(all, 0, threshold.ByChance)
	p.ripple = p.rippleOf(all)
	p.spare = p.spareOf(all)
	p.ebbed = p.ebbs(all)
	return p
}

// account sums retransmissions and the round trip over all connections.
func (p *path) account(all []*connection) {
	var sent, resent, again, needless, overtaken int64
	var rtt, floor, queued, n float64
	for _, c := range all {
		last := &c.samples[len(c.samples)-1]
		sent += max(last.Sent, last.Acked)
		resent += max(last.RetransmittedBytes, 0)
		if last.RetransmittedBytes == 0 {
			resent += last.Retransmitted * c.mss
		}
		again = again + last.Retransmitted
		needless = needless + last.Needless
		overtaken = overtaken + last.Overtaken
		gathers := p.gathers(c, len(all))
		for i := range c.samples {
			s := &c.samples[i]
			if s.Have&transfer.HaveRTT != 0 && (s.At > p.started || i == len(c.samples)-1) {
				rtt += s.RTT.Seconds()
				least := max(s.RTT-2*s.RTTVar-gathers, p.minRTT)
				floor += least.Seconds()
				if least >= scale(p.base, 1+threshold.StandingQueue) {
					queued++
				}
				n++
			}
		}
	}
	if sent > 0 {
		p.resent = min(float64(resent)/float64(sent), 1)
	}
	// Packets that the network doubles come twice too, but overtake nobody.
	if again > 0 && overtaken >= threshold.Overtaken {
		p.needless = min(float64(needless)/float64(again), 1)
	}
	if n > 0 {
		p.rtt = seconds(rtt / n)
		p.floor = seconds(floor / n)
		p.queued = queued / n
	}
}

// gathers is how much longer than two (RFC 5681, 4.2) the segments take to come that one of n connections'
// acknowledgements tell of. The round trip is the first one's (tcp_input.c, tcp_clean_rtx_queue), so it holds
// that as well: a receiver whose program reads slowly acknowledges as it reads, a dozen segments at once.
// Where the peer's window was not full, they came together on a link that lets packets go in batches.
func (p *path) gathers(c *connection, n int) time.Duration {
	if p.mean <= 0 || c.windowFull < threshold.AlsoFull {
		return 0
	}
	return seconds(max(c.acknowledges(p)-2, 0) * float64(c.mss) * 8 * float64(n) / p.mean)
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
func (p *path) standing() bool { return p.queueing() >= threshold.StandingQueue }

// level is the mean rate as a share of the best that lasted.
func (p *path) level() float64 {
	if p.top <= 0 {
		return 0
	}
	return p.mean / p.top
}

// uneven says whether data came in bursts with the link idle in between.
func (p *path) uneven() bool { return p.evenness > 0 && p.evenness < threshold.EvenRate }

// full says whether the link was: a queue stands in it and the rate is steady, from
// round trip to round trip or at least within each, or the queue is long and hardly ever
// gone. Where a queue is longer than our own bursts could make it and nothing is lost,
// only the link itself can be unsteady.
func (p *path) full() bool {
	level := p.level()
	queue := p.queueing()
	switch {
	case p.mean <= 0 || !p.standing() || p.ebbed || p.uneven() && queue < threshold.BeyondBursts:
		return false
	case level >= threshold.FlatRate || queue >= threshold.BeyondBursts && p.queued >= threshold.MostlyQueued:
		return true
	case p.evenness >= threshold.EvenRate:
		return level >= threshold.VeryUnsteady
	default:
		return queue >= threshold.LongQueue && level >= threshold.Unsteady && p.resent <= threshold.Losing
	}
}

// fullInBatches says that a queue stands in the path nearly all the time and the rate is
// steady, but data arrives in bursts within each round trip: a full link whose device lets
// packets go in batches, or windows that go out in bursts and queue by themselves.
func (p *path) fullInBatches() bool {
	return !p.full() && p.uneven() && p.level() >= threshold.FlatRate && p.queued >= threshold.MostlyQueued &&
		p.queueing() > threshold.WindowLimits-1
}

// queuedIn says of one round of one of n connections whether a queue stood in the path.
func (p *path) queuedIn(c *connection, r *round, n int) bool {
	floor := mean(r.samples, func(s *transfer.Sample) float64 { return (s.RTT - 2*s.RTTVar).Seconds() }) -
		p.gathers(c, n).Seconds()
	return floor >= (1+threshold.StandingQueue)*p.base.Seconds()
}

// fullIn says the same of a full link.
func (p *path) fullIn(c *connection, r *round, n int) bool {
	return c.has(transfer.HaveRTT) && p.queuedIn(c, r, n) && r.bps*float64(n) >= threshold.FlatRate*p.top
}

// ebbs is ebbed, by the rounds with a queue and those without, once started.
func (p *path) ebbs(all []*connection) bool {
	var with, without struct{ took, bytes float64 }
	for _, c := range all {
		for i := range c.rounds {
			r := &c.rounds[i]
			if r.start.At < p.started || !c.has(transfer.HaveRTT) {
				continue
			}
			of := &without
			if p.queuedIn(c, r, len(all)) {
				of = &with
			}
			of.took += r.length.Seconds()
			of.bytes += r.bps * r.length.Seconds()
		}
	}
	return p.resent > 0 && with.took > 0 && without.took >= threshold.Ebbed*(with.took+without.took) &&
		without.bytes*with.took < threshold.ClearlyUneven*with.bytes*without.took
}

// allows is what a window gives over the empty path, in bit/s.
func (p *path) allows(window int64) float64 {
	if p.base <= 0 {
		return 0
	}
	return float64(window) * 8 / p.base.Seconds()
}

// carries is what a window gives at the round trip that the transfer had, in bit/s.
func (p *path) carries(window int64) float64 {
	if p.rtt <= 0 {
		return p.allows(window)
	}
	return float64(window) * 8 / p.rtt.Seconds()
}

// leastRTT is the smallest round trip that any of an end's connections saw, 0 if none that
// can be true.
func leastRTT(e *transfer.End) time.Duration {
	if least := e.LeastRTT(); least < threshold.LongestTime {
		return least
	}
	return 0
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
