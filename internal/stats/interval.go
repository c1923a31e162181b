// Package stats computes intervals and decisions from a few noisy measurements. Rates are positive and their noise
// is multiplicative, so it computes on logarithms.
package stats

import "math"

// Interval is an estimate between two bounds.
type Interval struct{ Low, Mid, High float64 }

// unbounded is the ratio between the bounds of an interval that is too wide to be of use. Two values have such an
// interval if one is twice the other.
const unbounded = 1e4

// Bounds returns both bounds, or nil if the interval is unbounded or has no estimate.
func (i Interval) Bounds() *[2]float64 {
	if i.High > unbounded*i.Low || math.IsNaN(i.Mid) {
		return nil
	}
	return &[2]float64{i.Low, i.High}
}

// Within reports whether both bounds differ from the estimate by at most a share.
func (i Interval) Within(share float64) bool {
	return i.High <= i.Mid*(1+share) && i.Low >= i.Mid*(1-share)
}

// minForMedian is the smallest number of values whose range contains the median with 95 % confidence: 1 − 2/2⁶ =
// 96.9 %.
const minForMedian = 6

// Estimate bounds the typical value of positive measurements at the given confidence. With enough values it bounds
// the median without assumptions, otherwise it uses Student's t on logarithms. A single value has the bounds 0 and
// infinity.
func Estimate(values []float64, confidence float64) Interval {
	switch {
	case len(values) == 0:
		return Interval{0, math.NaN(), math.Inf(1)}
	case len(values) >= minForMedian:
		return median(values, confidence)
	}
	return geometric(Logs(values), confidence)
}

// Typical returns the value that Estimate bounds, NaN for no values.
func Typical(values []float64) float64 { return Estimate(values, 0.95).Mid }

// Gain bounds the factor between paired measurements. before[i] and after[i] are adjacent in time, so that slow
// drift cancels out. The shorter list sets the number of pairs.
func Gain(before, after []float64, confidence float64) Interval {
	pairs := min(len(before), len(after))
	if pairs == 0 {
		return Interval{0, math.NaN(), math.Inf(1)}
	}
	logs := make([]float64, pairs)
	for i := range logs {
		logs[i] = math.Log(after[i] / before[i])
	}
	return geometric(logs, confidence)
}

// PooledGain is Gain with noise known from earlier pairs, so that a few new pairs give a useful interval.
func PooledGain(before, after []float64, confidence float64, known Noise) Interval {
	plain := Gain(before, after, confidence)
	pairs := min(len(before), len(after))
	if pairs < 2 || known.DOF <= 0 {
		return plain
	}
	ratios := make([]float64, pairs)
	for i := range ratios {
		ratios[i] = math.Log(after[i] / before[i])
	}
	noise := Pool(known, ratios)
	half := Student((1+confidence)/2, math.Floor(noise.DOF)) * noise.Error(pairs)
	return Interval{plain.Mid * math.Exp(-half), plain.Mid, plain.Mid * math.Exp(half)}
}

// geometric returns Student's interval around the Middle, which resists one stalled run.
func geometric(logs []float64, confidence float64) Interval {
	mid := Middle(logs)
	if len(logs) < 2 {
		return Interval{0, math.Exp(mid), math.Inf(1)}
	}
	_, dev := MeanDev(logs)
	noise := Noise{dev, float64(len(logs) - 1)}
	half := Student((1+confidence)/2, noise.DOF) * noise.Error(len(logs))
	return Interval{math.Exp(mid - half), math.Exp(mid), math.Exp(mid + half)}
}

// Logs returns the natural logarithms of positive values.
func Logs(values []float64) []float64 {
	logs := make([]float64, len(values))
	for i, v := range values {
		logs[i] = math.Log(v)
	}
	return logs
}

// MeanDev returns the mean and the standard deviation (n − 1).
func MeanDev(values []float64) (mean, dev float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	if len(values) < 2 {
		return mean, 0
	}
	for _, v := range values {
		dev += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(dev / float64(len(values)-1))
}
