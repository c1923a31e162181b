package paths

import (
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// countsRule has the thresholds of a rise.
type countsRule struct {
	least int64   // segments of a window that counts
	floor float64 // the ratio of every window of it
}

var (
	lossRule       = countsRule{least: threshold.CountsSegments, floor: threshold.LossFloor}
	reorderingRule = countsRule{least: threshold.CountsSegments, floor: threshold.ReorderingFloor}
)

// counts follows a ratio of events to segments. It reports a rise and its end.
type counts struct {
	Windows  []count   `json:"windows,omitempty"` // the newest
	Days     []day     `json:"days,omitempty"`
	Reported time.Time `json:"told,omitzero"`  // since when it is risen
	Half     float64   `json:"half,omitempty"` // half-way back
}

// count is a window: its time in seconds since 1970, segments and events. It is stored, so it is short.
type count [3]int64

func (c count) at() time.Time { return time.Unix(c[0], 0).UTC() }
func (c count) possible() bool {
	return within(float64(c[0]), latestSecond) && c[1] > 0 && float64(c[1]) <= largest && c[2] >= 0 && c[2] <= c[1]
}
func (c count) ratio() float64 { return float64(c[2]) / float64(c[1]) }

func (c *counts) known() bool {
	return len(c.Windows) >= threshold.CountsBefore && len(c.Days) >= threshold.LearntDays
}

func (c *counts) add(at time.Time, segments, events int64, rule countsRule) (s *Shift) {
	if segments < rule.least || events < 0 {
		return nil
	}
	c.Windows = append(c.Windows, count{at.Unix(), segments, min(events, segments)})
	c.Windows = newest(c.Windows, threshold.CountsBefore+threshold.CountsAfter)
	if len(c.Windows) < threshold.CountsAfter {
		return nil
	}
	before := c.Windows[:len(c.Windows)-threshold.CountsAfter]
	last := c.Windows[len(c.Windows)-threshold.CountsAfter:]
	low := 1.0
	high := 0.0
	for _, w := range last {
		low = min(low, w.ratio())
		high = max(high, w.ratio())
	}
	switch {
	case !c.Reported.IsZero() && high < c.Half:
		s = &Shift{Before: c.Half, After: pooled(last).ratio(), Since: last[0].at(), Back: true}
		c.Reported = time.Time{}
	case !c.Reported.IsZero() && at.Sub(c.Reported) >= threshold.SettledRise:
		c.Reported = time.Time{}
	case c.Reported.IsZero() && c.risen(before, last, low, rule):
		was := pooled(before)
		is := pooled(last)
		c.Reported = last[0].at()
		c.Half = (was.ratio() + is.ratio()) / 2
		s = &Shift{Before: was.ratio(), After: is.ratio(), Since: c.Reported}
	}
	c.Days = remember(c.Days, at, low, high)
	return s
}

// risen reports whether each of the last windows is above all earlier ones.
func (c *counts) risen(before, last []count, low float64, rule countsRule) bool {
	if len(before) < threshold.CountsBefore || len(c.Days) < threshold.LearntDays || low < rule.floor {
		return false
	}
	for _, d := range c.Days {
		if low < threshold.CountsFactor*d.High {
			return false
		}
	}
	least, _ := wilson(pooled(last))
	_, most := wilson(pooled(before))
	return least > threshold.CountsFactor*most
}

func pooled(all []count) (sum count) {
	for _, c := range all {
		sum[1] = sum[1] + c[1]
		sum[2] = sum[2] + c[2]
	}
	return sum
}

// wilson is the score interval of a ratio (Wilson 1927), at 99.9 %.
func wilson(c count) (low, high float64) {
	n := float64(c[1])
	p := c.ratio()
	const z2 = threshold.CountsZ * threshold.CountsZ
	middle := p + z2/(2*n)
	half := threshold.CountsZ * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	return (middle - half) / (1 + z2/n), (middle + half) / (1 + z2/n)
}
