package live

import (
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// spareOf is how many times the best rate that lasted the link gives at the least: 1 where it may be full. An
// acknowledgement waits until the last of the segments that it tells of has crossed the link, so that the
// first of them takes as long as all do, and what waits in the queue before them. A host that stands still makes it
// longer at times, so the fifth of the round trips that waits least counts. The least round trip has to be
// one of small packets, which it is not where the handshake took longer: a radio that wakes up. 0 is not known: of
// fast links the time is lost in the hosts'.
func (p *path) spareOf(all []*connection) float64 {
	if p.later <= 0 || p.minRTT <= 0 || !all[0].has(transfer.HaveSegmentsIn|transfer.HaveAcked|transfer.HaveRTT) {
		return 0
	}
	even := all[0].acknowledges(p) * float64(all[0].mss) * 8 / p.later // what they take where that is the link's rate
	if even < max(threshold.SerialisationSeen*p.minRTT.Seconds(), threshold.SerialisationLeast.Seconds()) {
		return 0
	}
	if handshake := all[0].sender.Samples[0].RTT; (handshake - p.minRTT).Seconds() > even {
		return 0
	}
	var trips []time.Duration
	for _, c := range all {
		for i := firstFrom(c.samples, p.started); i < len(c.samples); i++ {
			trips = append(trips, c.samples[i].RTT)
		}
	}
	if len(trips) < threshold.EvenStretches {
		return 0
	}
	slices.Sort(trips)
	waited := (trips[int(float64(len(trips))*threshold.WaitsLeast)] - p.minRTT).Seconds()
	return min(even/max(waited, even/threshold.SpareMost), threshold.SpareMost)
}

// tellSpare adds what the link gives at the least, where that is more than what came. Far more is not resolved.
func (p *path) tellSpare(values verdict.Values) {
	if p.spare >= threshold.LinkFree && p.spare < threshold.SpareMost {
		values["link_least_bps"] = p.spare * p.later
	}
}

// acknowledges is how many segments an acknowledgement tells of once started, one at the least.
func (c *connection) acknowledges(p *path) float64 {
	if !c.has(transfer.HaveSegmentsIn | transfer.HaveAcked) {
		return 1
	}
	i := firstFrom(c.samples, p.started)
	last := len(c.samples) - 1
	if i >= last || c.samples[last].SegmentsIn <= c.samples[i].SegmentsIn {
		return 1
	}
	bytes := float64(c.samples[last].Acked - c.samples[i].Acked)
	return max(bytes/float64(c.mss)/float64(c.samples[last].SegmentsIn-c.samples[i].SegmentsIn), 1)
}

// rippleOf is the standard deviation of what arrives in half a round trip, as a share of what arrives in
// a whole one, without what acknowledgements of several segments at once make of an even stream. A
// link that is full delivers evenly; a window that it could send in half of the time makes it 0.3.
// 0 is not known, also where losses make the rate vary.
func (p *path) rippleOf(all []*connection) float64 {
	if len(all) != 1 || p.mean <= 0 || p.rtt <= 0 || p.resent > threshold.Losing {
		return 0
	}
	c := all[0]
	half := p.rtt / 2
	each := c.acknowledges(p)
	var squares, n float64
	for i, j := firstFrom(c.samples, p.started), 0; i < len(c.samples); i++ {
		for j = max(j, i); j < len(c.samples) && c.samples[j].At-c.samples[i].At < half; j++ {
		}
		if j == len(c.samples) {
			break
		}
		took := c.samples[j].At - c.samples[i].At
		if took > scale(half, threshold.RippleSpan) {
			continue
		}
		arrived := (c.delivered[j] - c.delivered[i]) / float64(c.mss)
		away := arrived - p.mean/8/float64(c.mss)*took.Seconds()
		squares = squares + away*away
		n = n + 1
	}
	if n < threshold.EvenStretches {
		return 0
	}
	const even = 6 // the variance of how many whole steps fall into a stretch is a sixth of the step's square
	window := p.mean / 8 * p.rtt.Seconds() / float64(c.mss)
	return math.Sqrt(max(squares/n-each*each/even, 0)) / window
}
