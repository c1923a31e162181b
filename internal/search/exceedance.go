package search

import (
	"math"
	"math/rand/v2"

	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// Exceedance compares one candidate with the baseline where losses scatter single runs. It assumes nothing of how they
// scatter. Two exact tests decide together, each at half the chance:
//
//   - how many runs of each exceed a goodput that was fixed before them (Barnard, Biometrika 34, 1947, with Boschloo's
//     order of the outcomes, Statistica Neerlandica 24, 1970). Few runs suffice where a candidate fills the path each
//     time and the baseline never does.
//   - their ranks (stats.Chance). They distinguish a candidate that is always faster from a baseline that often is
//     nearly as fast.
//
// Runs are made in alternation. After an equal number of both the gain is shown, ruled out, or open.
type Exceedance struct {
	level    float64      // bit/s
	order    float64      // of the candidate among those that are compared: 1, 2 ...
	runs     [2][]float64 // goodputs in bit/s: of the baseline and of the candidate
	reversed bool         // the candidate runs first
	outcome  Verdict
}

const (
	// shownChance is the chance at which the first look shows a gain, firstLook its runs of each side: all of them without
	// exception. Later looks have half of it, so that all together keep ComparisonError (simulated on recorded losses).
	shownChance, firstLook = 0.008, 4
	// LikelyChance is the chance at which the last look calls a gain likely: three runs each without exception.
	LikelyChance = 0.05
	// minRuns are the runs of each side before the gain is ruled out, maxRuns those after which it stays open.
	minRuns, maxRuns = 3, 10
)

// NewExceedance returns an Exceedance. level is the goodput in bit/s that the candidate's runs are expected to exceed
// and the baseline's are not, known from other runs. order is 1 for the first candidate that is compared, 2 for the
// next: each has that part of the first one's error.
func NewExceedance(level float64, order int, seed uint64) *Exceedance {
	return &Exceedance{level: level, order: float64(max(order, 1)), outcome: Inconclusive,
		reversed: rand.New(rand.NewPCG(seed, 3)).IntN(2) == 1}
}

// Next returns what to run now: 0 is the baseline, 1 the candidate. Their order is A B B A, so that drift cancels out.
// It returns false when the comparison is decided.
func (e *Exceedance) Next() (number int, more bool) {
	if e.outcome != Inconclusive || e.total() >= 2*maxRuns {
		return 0, false
	}
	second := (e.total()+1)/2%2 == 1
	if second != e.reversed {
		number = 1
	}
	return number, true
}

func (e *Exceedance) total() int { return len(e.runs[0]) + len(e.runs[1]) }

// Observe takes a run's goodput in bit/s: of the baseline as number 0, of the candidate as 1.
func (e *Exceedance) Observe(number int, goodput float64) {
	e.runs[number] = append(e.runs[number], max(goodput, 1))
	n := len(e.runs[0])
	switch {
	case n != len(e.runs[1]) || n < minRuns:
	case e.Chance() <= shownAt(n):
		e.outcome = Change
	case e.Below(promising) >= 1-LikelyChance-1e-9 && e.Interval(0).Mid < worthwhile:
		e.outcome = NoChange
	}
}

// shownAt returns the chance at which a look at n runs of each side shows a gain.
func shownAt(n int) float64 {
	if n > firstLook {
		return shownChance / 2
	}
	return shownChance
}

// Outcome returns the decision: Change where a gain is shown, NoChange where one of a tenth
// is unlikely and none of 5 % is to be expected.
func (e *Exceedance) Outcome() Verdict { return e.outcome }

// Interval returns the candidate's factor over the baseline, with its interval at a confidence.
func (e *Exceedance) Interval(confidence float64) stats.Interval {
	return stats.Shift(e.runs[0], e.runs[1], confidence)
}

// Gain returns the same factor with an interval whose lower bound is above 1 only where a gain is shown.
func (e *Exceedance) Gain() stats.Interval {
	if e.outcome == Change {
		gain := e.Interval(0.95)
		gain.Low = math.Max(gain.Low, math.Nextafter(1, 2))
		return gain
	}
	gain := e.Interval(1 - 2*ComparisonError)
	gain.Low = math.Min(gain.Low, 1)
	return gain
}

// Runs returns how many runs a side has had.
func (e *Exceedance) Runs(number int) int { return len(e.runs[number]) }

// Chance returns the probability with which runs of equal distributions differ as much as these, for all candidates
// together.
func (e *Exceedance) Chance() float64 {
	var above [2]int
	for side, runs := range e.runs {
		for _, goodput := range runs {
			if goodput > e.level {
				above[side]++
			}
		}
	}
	ranks := stats.Chance([]stats.Pair{{Before: e.runs[0], After: e.runs[1]}}, 1)
	return min(1, 2*e.order*min(ranks, barnard(above[1], len(e.runs[1]), above[0], len(e.runs[0]))))
}

// barnard returns the probability that of n and m runs of one distribution x and y exceed the level, or that a rarer
// outcome occurs, for the share of exceedances that makes it the largest.
func barnard(x, n, y, m int) (chance float64) {
	ofN := binomials(n)
	ofM := binomials(m)
	// extreme adds up the ways to x or more of the candidate's among t exceedances, the largest x first, while their
	// share of all ways is at most limit. It returns the share with the last one as well.
	extreme := func(t, last int, limit float64) (ways, share float64) {
		all := 0.0
		for a := max(0, t-m); a <= min(n, t); a++ {
			all += ofN[a] * ofM[t-a]
		}
		for a := min(n, t); a >= max(last, t-m); a-- {
			share = (ways + ofN[a]*ofM[t-a]) / all
			if share > limit {
				break
			}
			ways += ofN[a] * ofM[t-a]
		}
		return ways, share
	}
	_, observed := extreme(x+y, x, 1)
	outcomes := make([]float64, n+m+1) // ways to be as rare, by the number of exceedances
	for t := range outcomes {
		outcomes[t], _ = extreme(t, 0, observed*(1+1e-9))
	}
	const steps = 60
	for i := 1; i < steps; i++ {
		share := float64(i) / steps
		sum := 0.0
		for t := n + m; t >= 0; t-- {
			sum = sum*share/(1-share) + outcomes[t]
		}
		chance = max(chance, sum*math.Pow(1-share, float64(n+m)))
	}
	return min(chance, 1)
}

// binomials returns how many sets of each size there are of n.
func binomials(n int) []float64 {
	all := make([]float64, n+1)
	all[0] = 1
	for k := range n {
		all[k+1] = all[k] * float64(n-k) / float64(k+1)
	}
	return all
}

// Below returns the probability, by ranks, with which the candidate gives less than a factor of the baseline.
func (e *Exceedance) Below(factor float64) float64 {
	return 1 - stats.Chance([]stats.Pair{{Before: e.runs[1], After: e.runs[0]}}, 1/factor)
}

// Needs returns how many more runs would show the gain if the sides go on to exceed the level as often as so far; at
// least one run of each. It returns 0 where more than maxPlanned of each would be needed.
func (e *Exceedance) Needs() int {
	var above [2]float64
	for side, runs := range e.runs {
		n := 0.5 // half a run each way: nobody is sure of never and always
		for _, goodput := range runs {
			if goodput > e.level {
				n++
			}
		}
		above[side] = n / float64(len(runs)+1)
	}
	const maxPlanned = 40
	for n := max(len(e.runs[0]), len(e.runs[1])) + 1; n <= maxPlanned; n++ {
		x := int(math.Round(above[1] * float64(n)))
		y := int(math.Round(above[0] * float64(n)))
		if 2*e.order*barnard(x, n, y, n) <= shownAt(n) {
			return 2*n - e.total()
		}
	}
	return 0
}
