package stats

import (
	"math"
	"slices"
)

// Noise is the pooled scatter of repeated measurements: a relative standard deviation and its degrees of freedom.
type Noise struct{ Dev, DOF float64 }

// Pool estimates the noise from groups of logarithms of repeated measurements. The prior adds its degrees of
// freedom, so that two equal values do not look exact. Deviations from each group's median limit the effect of one
// stalled run.
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

// spread returns a standard deviation. From three values on, the median absolute deviation bounds it: times 1.4826
// for normal noise, doubled for heavy tails and doubled again for three values.
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

// sorted returns the values in order. It takes half the time of slices.Sorted(slices.Values(values)).
func sorted(values []float64) []float64 {
	s := slices.Clone(values)
	slices.Sort(s)
	return s
}

// Median returns the median, NaN for no values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := sorted(values)
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Middle returns the mean without a quarter of the values at each end, for comparisons. For fewer than four values
// it returns the mean, or the median of three.
func Middle(values []float64) float64 {
	s := sorted(values)
	cut := (len(s) + 1) / 4
	mean, _ := MeanDev(s[cut : len(s)-cut])
	return mean
}

// Error returns the standard error of the Middle of n values: 15 % above the mean's under normal noise.
func (n Noise) Error(values int) float64 {
	if values < 3 {
		return n.Dev / math.Sqrt(float64(values))
	}
	return 1.15 * n.Dev / math.Sqrt(float64(values))
}
