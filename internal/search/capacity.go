package search

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Capacity climbs to the rate that UDP gets through a path, by the rules of RFC 9097
// section 8 with whole trials in place of its feedback every 50 ms: the rate rises while
// nothing is lost and delays vary by less than 30 ms, and falls after loss or a
// variation above 90 ms that show twice running; between the two it is good enough. The
// zero value begins at 1 Mbit/s.
type Capacity struct {
	Start float64 // bit/s; 0 is 1 Mbit/s

	low, high     float64 // the largest clean rate; the smallest congested one, 0: none yet
	next          float64
	trials        int
	best          float64
	senderLimited bool // the sender could not send more
	doubted       bool // the last trial was congested and is being repeated
}

// CapacityTrial is what one trial at a rate found. Its rates are counted alike.
type CapacityTrial struct {
	OfferedBps  float64        `json:"offered_bps"`
	SentBps     float64        `json:"-"`
	ReceivedBps float64        `json:"received_bps"`
	LossRatio   float64        `json:"loss_ratio"`
	Variation   units.Duration `json:"delay_variation_p95_s,omitzero"` // above the least delay; 0: not known
	// VariationMean is the mean above the least delay, which feedback reports.
	VariationMean *units.Duration `json:"delay_variation_mean_s,omitempty"`
}

const (
	littleVariation = 30 * time.Millisecond
	muchVariation   = 90 * time.Millisecond
	// littleLoss is what RFC 9097 calls an acceptable sequence error rate for the metric:
	// a single stray loss in a trial does not stop the climb.
	littleLoss     = 1e-3
	capacityTrials = 24
	capacityClose  = 1.02
)

// Next is the rate to try, in bit/s; done says that no more need be tried.
func (c *Capacity) Next() (bps float64, done bool) {
	switch {
	case c.trials == 0:
		c.next = c.Start
		if c.next == 0 {
			c.next = 1e6
		}
	case c.senderLimited || c.trials >= capacityTrials || c.high > 0 && c.high <= c.low*capacityClose:
		return 0, true
	}
	return c.next, false
}

// Observe takes in what a trial at Next's rate found.
func (c *Capacity) Observe(t CapacityTrial) {
	c.trials++
	variation := time.Duration(t.Variation)
	c.best = max(c.best, t.ReceivedBps)
	congested := t.LossRatio > littleLoss || variation > muchVariation
	if congested && !c.doubted {
		c.doubted = true // other traffic may have been the cause: the same once more
		return
	}
	c.doubted = false
	switch {
	case congested:
		if c.high == 0 || t.OfferedBps < c.high {
			c.high = t.OfferedBps
		}
		if c.low >= c.high {
			c.low = c.high / 2 // a rate that was clean before no longer is
		}
	case t.SentBps < 0.9*t.OfferedBps:
		c.senderLimited = true
	default:
		c.low = max(c.low, t.OfferedBps)
	}
	switch {
	case c.high == 0 && variation < littleVariation:
		c.next = 4 * t.OfferedBps
	case c.high == 0:
		c.next = 1.1 * t.OfferedBps
	case congested && t.ReceivedBps > c.low*capacityClose && t.ReceivedBps < c.high/capacityClose:
		c.next = t.ReceivedBps // a full link says itself what it carries
	default:
		c.next = (max(c.low, c.high/64) + c.high) / 2
	}
}

// Best is the largest rate that was received in one trial; atLeast says that the sender
// and not the path set its end.
func (c *Capacity) Best() (bps float64, atLeast bool) { return c.best, c.high == 0 }
