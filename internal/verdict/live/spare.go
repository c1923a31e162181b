package live

import (
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// linkHeadroomOf returns the least rate of the link as a multiple of the best rate that lasted; 1: it may be full, 0:
// not known. An acknowledgement waits until the last of its segments has crossed the link, so its round trip includes
// their serialisation and the queue before them. The smoothed round trip of the first acknowledgements is still that of
// the handshake. A host that stops lengthens single round trips, so the fifth that waits least counts. The least round
// trip must be that of small packets: it is not if the handshake took longer, as after a radio's wake-up. On fast links
// the time is lost in the hosts' own delays.
func (p *path) linkHeadroomOf(all []*connection) float64 {
	if p.lastingRateStarted <= 0 || p.minRTT <= 0 ||
		!all[0].has(transfer.HaveSegmentsIn|transfer.HaveAcked|transfer.HaveRTT) {
		return 0
	}
	// even is how long they take if that is the link's rate.
	even := all[0].segmentsPerAck(p) * float64(all[0].mss) * 8 / p.lastingRateStarted
	if even < max(threshold.SerialisationSeen.Value*p.minRTT.Seconds(), threshold.MinSerialisation.Time().Seconds()) {
		return 0
	}
	if handshake := all[0].sender.Samples[0].RTT; (handshake - p.minRTT).Seconds() > even {
		return 0
	}
	var trips []time.Duration
	for _, c := range all {
		for i := firstFrom(c.samples, p.startedAt); i < len(c.samples); i++ {
			if c.samples[i].SegmentsIn >= int64(threshold.SmoothedAfter.Value) {
				trips = append(trips, c.samples[i].RTT)
			}
		}
	}
	if len(trips) < int(threshold.EvenStretches.Value) {
		return 0
	}
	slices.Sort(trips)
	waited := (trips[int(float64(len(trips))*threshold.LeastWaits.Value)] - p.minRTT).Seconds()
	return min(even/max(waited, even/threshold.MaxHeadroom.Value), threshold.MaxHeadroom.Value)
}

// addHeadroom adds the least rate of the link if it is more than the rate that came. A far larger one is not resolved.
func (p *path) addHeadroom(values verdict.Values) {
	if p.linkHeadroom >= threshold.LinkFree.Value && p.linkHeadroom < threshold.MaxHeadroom.Value {
		values["link_least_bps"] = p.linkHeadroom * p.lastingRateStarted
	}
}

// segmentsPerAck returns how many segments an acknowledgement covers after slow start, at least 1.
func (c *connection) segmentsPerAck(p *path) float64 {
	if !c.has(transfer.HaveSegmentsIn | transfer.HaveAcked) {
		return 1
	}
	i := firstFrom(c.samples, p.startedAt)
	last := len(c.samples) - 1
	if i >= last || c.samples[last].SegmentsIn <= c.samples[i].SegmentsIn {
		return 1
	}
	bytes := float64(c.samples[last].Acked - c.samples[i].Acked)
	return max(bytes/float64(c.mss)/float64(c.samples[last].SegmentsIn-c.samples[i].SegmentsIn), 1)
}

// arrivalVariationOf returns the standard deviation of the bytes that arrive in half a round trip, as a share of those
// in a whole one, without the share that delayed acknowledgements cause. A full link delivers evenly. A window that
// the link sends in half of the time gives 0.3. 0 is not known, also where losses make the rate vary.
func (p *path) arrivalVariationOf(all []*connection) float64 {
	if len(all) != 1 || p.meanRate <= 0 || p.meanRTT <= 0 || p.retransmitRatio > threshold.Losing.Value {
		return 0
	}
	c := all[0]
	half := p.meanRTT / 2
	each := c.segmentsPerAck(p)
	var squares, n float64
	for i, j := firstFrom(c.samples, p.startedAt), 0; i < len(c.samples); i++ {
		for j = max(j, i); j < len(c.samples) && c.samples[j].At-c.samples[i].At < half; j++ {
		}
		if j == len(c.samples) {
			break
		}
		took := c.samples[j].At - c.samples[i].At
		if took > scale(half, threshold.VariationSpan.Value) {
			continue
		}
		arrived := (c.delivered[j] - c.delivered[i]) / float64(c.mss)
		away := arrived - p.meanRate/8/float64(c.mss)*took.Seconds()
		squares = squares + away*away
		n = n + 1
	}
	if n < threshold.EvenStretches.Value {
		return 0
	}
	const even = 6 // the variance of how many whole steps fall into a stretch is a sixth of the step's square
	window := p.meanRate / 8 * p.meanRTT.Seconds() / float64(c.mss)
	return math.Sqrt(max(squares/n-each*each/even, 0)) / window
}
