package changepoint

import (
	"math"
	"slices"
	"time"
)

// A stable word changes with two equal results in a row. A word that wavers changes when the run is less likely
// than sureOfWords, given its past frequency.
const (
	minWords    = 3 // results of the old word
	inARow      = 2
	minRun      = 3 // minimum run of a wavering word
	sureOfWords = 1e-4
)

// Word follows a series of words that should stay the same: limiter, path MTU, far end's kernel. Its zero value has
// no results.
type Word struct {
	// Wavers means that the word also changes by chance, as a path's limiter does. Then only results that are Apart
	// count, since others correlate.
	Wavers bool

	old  []string // at most Before, the newest
	next string   // candidate for the new word
	run  int      // newest results equal to next
	last time.Time
}

// Usual returns the most frequent earlier word; "" with too few.
func (w *Word) Usual() string {
	if len(w.old) < minWords {
		return ""
	}
	counts := map[string]int{}
	most := ""
	for _, one := range w.old {
		counts[one]++
		if counts[one] > counts[most] {
			most = one
		}
	}
	return most
}

// Wants reports whether and when a retest is useful.
func (w *Word) Wants() (at time.Time, ok bool) { return w.last.Add(Soon), w.run > 0 && !w.Wavers }

// Add adds the next result's word, "" when unknown. It returns the previous word when the word has changed.
func (w *Word) Add(at time.Time, word string) (before string, changed bool) {
	if word == "" || w.Wavers && !w.last.IsZero() && at.Sub(w.last) < Apart {
		return "", false
	}
	w.last = at
	before = w.Usual()
	switch {
	case before == "" || word == before:
		w.settle()
		w.keep(word)
		return "", false
	case word == w.next:
		w.run++
	default:
		w.settle()
		w.next = word
		w.run = 1
	}
	if !w.sure() {
		return "", false
	}
	w.old = slices.Repeat([]string{word}, max(w.run, minWords))
	w.next = ""
	w.run = 0
	return before, true
}

// sure reports whether the run is too long for chance.
func (w *Word) sure() bool {
	if !w.Wavers {
		return w.run >= inARow
	}
	seen := 0
	for _, one := range w.old {
		if one == w.next {
			seen++
		}
	}
	share := float64(seen+1) / float64(len(w.old)+2) // Laplace's rule of succession
	return w.run >= minRun && math.Pow(share, float64(w.run)) < sureOfWords
}

// settle moves an unconfirmed run into the earlier words.
func (w *Word) settle() {
	for range w.run {
		w.keep(w.next)
	}
	w.next = ""
	w.run = 0
}

func (w *Word) keep(word string) {
	w.old = append(w.old, word)
	w.old = w.old[max(len(w.old)-Before, 0):]
}
