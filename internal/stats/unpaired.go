package stats

import (
	"math"
	"slices"
)

// Pair has measurements of two kinds that are comparable with each other, such as the same span of several runs.
type Pair struct{ Before, After []float64 }

// Shift bounds the factor between the typical values of two lists measured in alternation, without assumptions on
// their noise. It is the Hodges-Lehmann median of all ratios, with bounds from Mann and Whitney's U (Ann. Math.
// Stat. 34-2, 1963). Lists too short for the confidence have bounds of 0 and infinity: 95 % needs four values each.
func Shift(before, after []float64, confidence float64) Interval {
	return ShiftOf([]Pair{{before, after}}, confidence)
}

// ShiftOf is Shift for several independent strata: values are compared with those of their own stratum only, and U is
// the sum over all strata (van Elteren, Bull. Inst. Int. Stat. 37, 1960).
func ShiftOf(strata []Pair, confidence float64) Interval {
	ratios, chances := ranks(strata)
	out := Interval{0, Median(ratios), math.Inf(1)}
	cut := 0
	below := 0.0 // ratios at each end that are due to chance
	for u, chance := range chances {
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

// Chance returns the probability with which values of the same distribution would be larger after than before as often
// as these are, by the same U: of four values each without overlap 1/70. A tie counts against the larger values.
func Chance(strata []Pair, factor float64) (p float64) {
	ratios, chances := ranks(strata)
	u := 0
	for _, r := range ratios {
		if r > factor {
			u++
		}
	}
	for _, chance := range chances[u:] {
		p += chance
	}
	return math.Min(p, 1)
}

// ranks returns the ratios of all pairs within the strata, and the distribution of how many of them are above 1 where
// both kinds have the same distribution.
func ranks(strata []Pair) (ratios, chances []float64) {
	chances = []float64{1}
	for _, s := range strata {
		for _, b := range s.Before {
			for _, a := range s.After {
				ratios = append(ratios, a/b)
			}
		}
		of := rankSums(len(s.Before), len(s.After))
		sum := make([]float64, len(chances)+len(of)-1)
		for i, p := range chances {
			for j, q := range of {
				sum[i+j] += p * q
			}
		}
		chances = sum
	}
	return ratios, chances
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
