package search

import "time"

// Capacity climbs to the rate that UDP gets through a path, by the rules of RFC 9097
// section 8 with whole trials in place of its feedback every 50 ms: the rate rises while
// nothing is lost and delays vary by less than 30 ms, and falls after loss or a
// variation above 90 ms that show twice running; between the two it is good enough. The
// zero value begins at 1 Mbit/s.
type Capacity struct {
	Start float64 // bit/s; 0 is 1 Mbit/s

	low, high float64 // the largest clean rate; the smallest congested one, 0: none yet
	next      float64
	trials    int
	best      float64
	held      bool // the sender could not send more
	doubted   bool // the last trial was congested and is being repeated
}

// CapacityTrial is what one trial at a rate found.
type CapacityTrial struct {
	Offered, Sent, Received float64 // bit/s, counted alike
	LossRatio               float64
	Variation               time.Duration // 95th percentile above the least delay; 0: not told
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
	case c.held || c.trials >= capacityTrials || c.high > 0 && c.high <= c.low*capacityClose:
		return 0, true
	}
	return c.next, false
}

// Observe takes in what a trial at Next's rate found.
func (c *Capacity) Observe(t CapacityTrial) {
	c.trials++
	c.best = max(c.best, t.Received)
	congested := t.LossRatio > littleLoss || t.Variation > muchVariation
	if congested && !c.doubted {
		c.doubted = true // other traffic may have been the cause: the same once more
		return
	}
	c.doubted = false
	switch {
	case congested:
		if c.high == 0 || t.Offered < c.high {
			c.high = t.Offered
		}
		if c.low >= c.high {
			c.low = c.high / 2 // what was clean before is not any more
		}
	case t.Sent < 0.9*t.Offered:
		c.held = true
	default:
		c.low = max(c.low, t.Offered)
	}
	switch {
	case c.high == 0 && t.Variation < littleVariation:
		c.next = 4 * t.Offered
	case c.high == 0:
		c.next = 1.1 * t.Offered
	case congested && t.Received > c.low*capacityClose && t.Received < c.high/capacityClose:
		c.next = t.Received // a full link says itself what it carries
	default:
		c.next = (max(c.low, c.high/64) + c.high) / 2
	}
}

// Best is the largest rate that was received in one trial; atLeast says that the sender
// and not the path set its end.
func (c *Capacity) Best() (bps float64, atLeast bool) { return c.best, c.high == 0 }
