// Package changepoint detects changes of a path from its results in measured order. It has no clock and no I/O.
//
// Flow of Track.Add:
//  1. A value outside of the usual range starts a suspicion; drifted also compares the newest results with earlier
//     ones.
//  2. Retests and scheduled results of a suspicion go to test.
//  3. Results on another level make a dip, otherwise the suspicion ends.
//  4. visit counts scheduled results at least Apart: they confirm the change or end the dip.
package changepoint

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// Thresholds. Before, After, Least and Sure come from simulated series. At most 1 in 1,000 results gives a false
// alarm in quiet, bimodal, daily or outlier series, 4 in 1,000 when neighbours correlate and scatter by 12 %.
const (
	Before = 48   // results in the old level
	After  = 8    // results in the new level
	Least  = 0.15 // least difference of the medians
	Sure   = 1e-4 // p of the Mann–Whitney test, two-sided

	minConfidentBefore = 12 // fewer results than Before + After: low confidence
	fewAfter           = 5
	sureOfFew          = 1e-3
)

// Change is a shift of a series' level.
type Change struct {
	At            int     // index of the first result of the new level
	Before, After float64 // medians
	P             float64
	LowConfidence bool // fewer results than required
}

// Factor returns After / Before.
func (c Change) Factor() float64 { return c.After / c.Before }

// Last reports whether the newest results of a series differ from earlier ones.
func Last(values []float64) (Change, bool) {
	n := len(values)
	switch {
	case n >= Before+After:
		return test(values, n-After-Before, n-After, n, Sure, false)
	case n >= minConfidentBefore+fewAfter:
		return test(values, 0, n-fewAfter, n, sureOfFew, true)
	}
	return Change{}, false
}

// All returns the changes of a whole series, oldest first. The level after a change is the old level of the next
// one.
func All(values []float64) (changes []Change) {
	from := 0
	for end := 1; end <= len(values); end++ {
		c, ok := Last(values[from:end])
		if !ok {
			continue
		}
		// The window detects the change once most of it is new. The change itself is where the values cross half-way
		// between the levels, looking back.
		at := end - 1
		half := math.Sqrt(c.Before * c.After)
		for at > from && (values[at-1] < half) == (c.After < half) {
			at--
		}
		c.At = at
		changes = append(changes, c)
		from = at
	}
	return changes
}

// Fallen returns which results of a series are on a level that has fallen and not returned: up to the result that
// reaches the level before, less Least of it. They are no past that others are compared with.
func Fallen(values []float64) []bool {
	fallen := make([]bool, len(values))
	since := -1 // the first result of the fall; -1: none
	level := 0.0
	for _, c := range append(All(values), Change{At: len(values), After: math.Inf(1)}) {
		switch {
		case since < 0 && c.After < c.Before:
			since = c.At
			level = c.Before
		case since >= 0 && c.After >= (1-Least)*level:
			for i := since; i < c.At; i++ {
				fallen[i] = true
			}
			since = -1
		}
	}
	return fallen
}

func test(values []float64, from, middle, to int, sure float64, low bool) (Change, bool) {
	before := values[from:middle]
	after := values[middle:to]
	c := Change{At: middle, Before: stats.Median(before), After: stats.Median(after), LowConfidence: low}
	if !(c.Before > 0 && c.After > 0) || math.Abs(c.After/c.Before-1) < Least {
		return c, false
	}
	larger := []stats.Pair{{Before: before, After: after}}
	if c.After < c.Before {
		larger = []stats.Pair{{Before: after, After: before}}
	}
	c.P = min(2*stats.Chance(larger, 1), 1)
	return c, c.P < sure
}

// Words returns where a series of words changes for good: two of the three results from there on are the new word,
// after three results of the old one.
func Words(words []string) (at []int) {
	const span = 3
	count := func(all []string, word string) (n int) {
		for _, w := range all {
			if w == word {
				n++
			}
		}
		return n
	}
	for i := span; i+span <= len(words); i++ {
		was := words[i-1]
		is := words[i]
		if was != is && count(words[i-span:i], was) == span && count(words[i:i+span], is) >= span-1 {
			at = append(at, i)
		}
	}
	return at
}
