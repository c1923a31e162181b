package stats

import (
	"math"
	"slices"
)

// Shift bounds the factor between what is typical of two lists that were measured in turn,
// with no assumption on how they scatter: the median of all ratios of one of each, between
// those that Mann and Whitney's U leaves at the given confidence (Hodges and Lehmann, Ann.
// Math. Stat. 34-2, 1963). Lists too short for that confidence have bounds of 0 and infinity:
// 95 % takes four of each. Low above 1 is the rank test's word that the second is larger.
func Shift(before, after []float64, confidence float64) Interval {
	var ratios []float64
	for _, b := range before {
		for _, a := range after {
			ratios = append(ratios, a/b)
		}
	}
	out := Interval{0, Median(ratios), math.Inf(1)}
	if len(ratios) == 0 {
		return out
	}
	cut := 0
	below := 0.0 // how many ratios at each end are chance
	for u, chance := range rankSums(len(before), len(after)) {
		below += chance
		if below > (1-confidence)/2 || u >= len(ratios)/2 {
			break
		}
		cut++
	}
	if cut > 0 {
		slices.Sort(ratios)
		out.Low = ratios[cut-1]
		out.High = ratios[len(ratios)-cut]
	}
	return out
}

// rankSums is the probability of each value of Mann and Whitney's U, from 0 on, for lists of
// those lengths from the same distribution: the coefficients of the Gaussian binomial.
func rankSums(n, m int) []float64 {
	counts := make([]float64, n*m+1)
	counts[0] = 1
	total := 1.0
	for i := 1; i <= n; i++ {
		for u := n * m; u >= m+i; u-- { // times 1 - q^(m+i)
			counts[u] -= counts[u-m-i]
		}
		for u := i; u <= n*m; u++ { // over 1 - q^i
			counts[u] += counts[u-i]
		}
		total *= float64(m+i) / float64(i)
	}
	for u := range counts {
		counts[u] /= total
	}
	return counts
}
