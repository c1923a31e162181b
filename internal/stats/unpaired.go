package stats

import (
	"math"
	"slices"
)

// Shift bounds the factor between the typical values of two lists measured in alternation, without assumptions on
// their noise. It is the Hodges-Lehmann median of all ratios, with bounds from Mann and Whitney's U (Ann. Math.
// Stat. 34-2, 1963). Lists too short for the confidence have bounds of 0 and infinity: 95 % needs four values each.
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
	below := 0.0 // ratios at each end that are due to chance
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

// rankSums returns the probability of each value of Mann and Whitney's U for two lists from the same distribution:
// the coefficients of the Gaussian binomial.
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
