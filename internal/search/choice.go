package search

import (
	"cmp"
	"math"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// alike is the ratio of two candidates' goodputs up to which the earlier in the list is taken:
// the list is in order of preference.
const alike = 1.05

// cleanerAlike is the same ratio where one of the two retransmits less by more than retransmitsAlike of the bytes that
// it sends.
const cleanerAlike, retransmitsAlike = 1.10, 0.01

// sparesLosses is the share of the bytes sent from which fewer retransmissions alone are worth a change: the candidate
// then only has to come within alike of the baseline's goodput, and be shown to come within cleanerAlike.
const sparesLosses = 0.02

// SparesLosses reports that a share of retransmitted bytes is so much below another that this alone is worth a change.
func SparesLosses(ratio, baseline float64) bool { return ratio+sparesLosses <= baseline }

// retransmitRatio returns the median share of bytes that the candidate retransmits, 0 where it is not known.
func (r *candidate) retransmitRatio() float64 {
	if len(r.retransmits) == 0 {
		return 0
	}
	return stats.Median(r.retransmits)
}

// isCleanerThan reports that the candidate retransmits clearly less than another.
func (r *candidate) isCleanerThan(other *candidate) bool {
	return r.retransmitRatio()+retransmitsAlike < other.retransmitRatio()
}

// sparesLosses reports that a candidate's fewer retransmissions alone are worth a change.
func (c *Comparison) sparesLosses(r *candidate) bool {
	return len(r.retransmits) > 0 && SparesLosses(r.retransmitRatio(), c.baseline.retransmitRatio())
}

// worthwhile returns the gain that a candidate needs to matter: 10 % where the baseline retransmits clearly less, any
// where the candidate does, and none where that alone is worth a change.
func (c *Comparison) worthwhile(r *candidate) float64 {
	switch {
	case c.sparesLosses(r):
		return 1 / alike
	case c.baseline.isCleanerThan(r):
		return cleanerAlike
	case r.isCleanerThan(&c.baseline):
		return 1
	}
	return worthwhile
}

// tolerated is the factor that a candidate has to be shown above: 1, or less where it spares losses.
func (c *Comparison) tolerated(r *candidate) float64 {
	if c.sparesLosses(r) {
		return 1 / cleanerAlike
	}
	return 1
}

// Best returns the candidate to choose; false where none seems to be better than the baseline.
func (c *Comparison) Best() (int, bool) {
	var shown, likely []int
	for i := range c.candidates {
		r := &c.candidates[i]
		number := i + 1
		mid := c.Gain(number).Mid
		switch better := c.gain(number, pickError).Low > c.tolerated(r) || c.above(number); {
		case better && mid >= min(1, c.worthwhile(r)) && !(c.baseline.isCleanerThan(r) && mid < cleanerAlike):
			shown = append(shown, number)
		case better || r.out || !(mid >= c.worthwhile(r)):
			continue
		}
		likely = append(likely, number)
	}
	if len(shown) == 0 {
		return 0, false
	}
	// A preferred candidate as fast need not be shown to be better: the verification does that.
	return c.choose(likely, c.fastest(shown)), true
}

// choose returns one of the candidates within 10 % of the fastest: of those that retransmit the least, the most
// preferred within 5 % of their fastest.
func (c *Comparison) choose(of []int, fastest int) int {
	near := c.near(of, fastest, cleanerAlike)
	cleanest := slices.DeleteFunc(slices.Clone(near), func(i int) bool {
		return slices.ContainsFunc(near, func(j int) bool { return c.candidates[j-1].isCleanerThan(&c.candidates[i-1]) })
	})
	return c.near(cleanest, c.fastest(cleanest), alike)[0]
}

// fastest returns the candidate of the largest gain.
func (c *Comparison) fastest(of []int) int {
	return slices.MaxFunc(of, func(i, j int) int { return cmp.Compare(c.Gain(i).Mid, c.Gain(j).Mid) })
}

// near returns the candidates that come within a ratio of one of them, in order of preference.
func (c *Comparison) near(of []int, one int, ratio float64) []int {
	return slices.DeleteFunc(slices.Clone(of), func(i int) bool {
		return i != one && c.Gain(i).Mid*ratio < c.Gain(one).Mid && c.ratio(i, one)*ratio < 1
	})
}

// Leader returns the candidate to be proven where the comparison was broken off: one of those still in the running,
// chosen as Best does, if the fastest of them seems to be better by a tenth in enough rounds.
func (c *Comparison) Leader() (int, bool) {
	if c.Decided() || c.rounds < fewestRounds || !c.Promising() {
		return 0, false
	}
	var running []int
	for i := range c.candidates {
		if r := &c.candidates[i]; !r.out && len(r.ratios) > 0 && stats.Middle(r.ratios) >= math.Log(promising) {
			running = append(running, i+1)
		}
	}
	return c.choose(running, c.leader()+1), true
}

// Preferred returns the best candidate by the runs so far, however few. It returns false if no candidate is estimated
// to gain enough over the baseline to matter.
func (c *Comparison) Preferred() (int, bool) {
	var of []int
	for i := range c.candidates {
		if c.Gain(i+1).Mid >= c.worthwhile(&c.candidates[i]) {
			of = append(of, i+1)
		}
	}
	if len(of) == 0 {
		return 0, false
	}
	return c.choose(of, c.fastest(of)), true
}

// ratio returns candidate i's factor over another in the rounds that both ran in, which the baseline's scatter does not
// change; 0 where there are too few.
func (c *Comparison) ratio(i, other int) float64 {
	apart := c.apart(i, other)
	if len(apart) < fewestPicked {
		return 0
	}
	return math.Exp(stats.Middle(apart))
}

// apart are the logarithms of candidate i's goodput over another's in the rounds that both ran in; none where
// either is 0, the baseline.
func (c *Comparison) apart(i, other int) (logs []float64) {
	if i == 0 || other == 0 {
		return nil
	}
	a := &c.candidates[i-1]
	b := &c.candidates[other-1]
	for at, round := range a.rounds {
		if same := slices.Index(b.rounds, round); same >= 0 {
			logs = append(logs, a.ratios[at]-b.ratios[same])
		}
	}
	return logs
}

// Promising says that a candidate still in the running seems to be better by a tenth.
func (c *Comparison) Promising() bool {
	leader := c.leader()
	return leader >= 0 && stats.Middle(c.candidates[leader].ratios) >= math.Log(promising)
}

// promising is the gain that makes a limiter of what a remedy takes away.
const promising = 1.1
