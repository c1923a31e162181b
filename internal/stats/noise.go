package stats

import (
	"math"
	"slices"
)

// Noise is how much repeated measurements of the same thing scatter, pooled over
// everything that was repeated: a relative standard deviation and the degrees of
// freedom behind it.
type Noise struct{ Dev, DOF float64 }

// Pool estimates the noise from groups of logarithms, each group repeats of one thing.
// The prior counts as so many earlier degrees of freedom: it keeps two values that
// happen to agree from looking exact. Scatter is taken from absolute deviations around
// each group's median, so that one stalled run does not drown all other decisions.
func Pool(prior Noise, groups ...[]float64) Noise {
	variance := prior.Dev * prior.Dev * prior.DOF
	dof := prior.DOF
	for _, logs := range groups {
		if len(logs) < 2 {
			continue
		}
		d := spread(logs)
		free := float64(len(logs) - 1)
		variance += d * d * free
		dof += free
	}
	if dof == 0 {
		return Noise{math.Inf(1), 1}
	}
	return Noise{math.Sqrt(variance / dof), dof}
}

// spread is a standard deviation; from three values on the median absolute deviation
// bounds it, times the 1.4826 that makes it one for normal noise and as much again for
// the heavier tails of real paths: twice that for three values, where it says little.
func spread(logs []float64) float64 {
	_, dev := MeanDev(logs)
	if len(logs) < 3 {
		return dev
	}
	mid := Middle(logs)
	away := make([]float64, len(logs))
	for i, v := range logs {
		away[i] = math.Abs(v - mid)
	}
	slack := 2.0
	if len(logs) == 3 {
		slack = 4
	}
	return math.Min(dev, slack*1.4826*Median(away))
}

// sorted returns the values in order. slices.Sorted(slices.Values(values)) takes twice as long.
func sorted(values []float64) []float64 {
	s := slices.Clone(values)
	slices.Sort(s)
	return s
}

// Median of values; NaN of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := sorted(values)
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Middle is the estimate that comparisons use: the mean of what remains when a quarter
// of the values at each end is left out. Below four values that is the plain mean, or
// the median of three.
func Middle(values []float64) float64 {
	s := sorted(values)
	cut := (len(s) + 1) / 4
	mean, _ := MeanDev(s[cut : len(s)-cut])
	return mean
}

// Error is the standard error of the Middle of n values: 15 % above the mean's, which
// is what trimming costs under normal noise.
func (n Noise) Error(values int) float64 {
	if values < 3 {
		return n.Dev / math.Sqrt(float64(values))
	}
	return 1.15 * n.Dev / math.Sqrt(float64(values))
}
