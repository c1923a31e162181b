package change

import (
	"math"
	"slices"
	"time"
)

// A word that does not waver is another one when two results in a row say so; one that does
// when so many in a row are less likely than sureOfWords, as often as it came before.
const (
	leastWords  = 3 // results that stand for what was
	inARow      = 2
	inARowOfAll = 3 // of one that wavers, at least
	sureOfWords = 1e-4
)

// Word follows a series of words that should stay the same: what limits a path, its path
// MTU, the kernel at the far end. Its zero value is one without results.
type Word struct {
	// Wavers says that chance changes the word too, as it does what limits a path. Then only
	// results that are Apart count, since others resemble each other.
	Wavers bool

	was  []string // at most Before of the newest
	next string   // what may be the new word
	run  int      // how many of the newest results are next
	last time.Time
}

// Usual is the most frequent of the words before; "" where there are too few.
func (w *Word) Usual() string {
	if len(w.was) < leastWords {
		return ""
	}
	counts := map[string]int{}
	most := ""
	for _, one := range w.was {
		counts[one]++
		if counts[one] > counts[most] {
			most = one
		}
	}
	return most
}

// Wants says whether a re-test would tell, and when.
func (w *Word) Wants() (at time.Time, ok bool) { return w.last.Add(Soon), w.run > 0 && !w.Wavers }

// Add takes the next result's word, "" where it is not known, and answers the word before
// where that is another one now.
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
	w.was = slices.Repeat([]string{word}, max(w.run, leastWords))
	w.next = ""
	w.run = 0
	return before, true
}

// sure says whether the run is too long for chance.
func (w *Word) sure() bool {
	if !w.Wavers {
		return w.run >= inARow
	}
	seen := 0
	for _, one := range w.was {
		if one == w.next {
			seen++
		}
	}
	share := float64(seen+1) / float64(len(w.was)+2) // Laplace's rule of succession
	return w.run >= inARowOfAll && math.Pow(share, float64(w.run)) < sureOfWords
}

// settle makes a run that came to nothing part of what was.
func (w *Word) settle() {
	for range w.run {
		w.keep(w.next)
	}
	w.next = ""
	w.run = 0
}

func (w *Word) keep(word string) {
	w.was = append(w.was, word)
	w.was = w.was[max(len(w.was)-Before, 0):]
}
