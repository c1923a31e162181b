// Package change says whether a path has changed, from its results in the order in which
// they were measured. It is arithmetic: no clock, no I/O.
package change

import (
	"math"

	moremath "github.com/aclements/go-moremath/stats"

	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// Thresholds. Before, After, Least and Sure are of a trial on made-up series: at most one
// false alarm in a thousand results where they are quiet, have two modes, a daily swing or
// outliers, and four where neighbours are alike and scatter by 12 %.
const (
	Before = 48   // results that stand for what was
	After  = 8    // results that stand for what is
	Least  = 0.15 // by how much the medians differ at least
	Sure   = 1e-4 // p of the Mann–Whitney test, two-sided

	fewBefore = 12 // with fewer results than Before + After: low confidence
	fewAfter  = 5
	sureOfFew = 1e-3
)

// Change is a shift of a series' level.
type Change struct {
	At            int     // index of the first result of what is
	Before, After float64 // medians
	P             float64
	LowConfidence bool // fewer results than it takes
}

// Factor is after over before.
func (c Change) Factor() float64 { return c.After / c.Before }

// Last says whether the newest results of a series differ from those before them.
func Last(values []float64) (Change, bool) {
	n := len(values)
	switch {
	case n >= Before+After:
		return test(values, n-After-Before, n-After, n, Sure, false)
	case n >= fewBefore+fewAfter:
		return test(values, 0, n-fewAfter, n, sureOfFew, true)
	}
	return Change{}, false
}

// All finds the changes of a whole series, the oldest first. After one, what was begins
// with what it changed to.
func All(values []float64) (changes []Change) {
	from := 0
	for end := 1; end <= len(values); end++ {
		c, ok := Last(values[from:end])
		if !ok {
			continue
		}
		// The window saw it as soon as most of it was new: the change itself is where the
		// values cross half-way between the two levels, looking back.
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

func test(values []float64, from, middle, to int, sure float64, low bool) (Change, bool) {
	before := values[from:middle]
	after := values[middle:to]
	c := Change{At: middle, Before: stats.Median(before), After: stats.Median(after), LowConfidence: low}
	if !(c.Before > 0 && c.After > 0) || math.Abs(c.After/c.Before-1) < Least {
		return c, false
	}
	result, err := moremath.MannWhitneyUTest(before, after, moremath.LocationDiffers)
	if err != nil { // all values are the same
		return c, false
	}
	c.P = result.P
	return c, c.P < sure
}

// Words finds where a series of words changes to another that stays: two of the three
// results from there on are the new one, as the three before were the old one's.
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
