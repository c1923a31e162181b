package stats

import "math"

// median bounds the median of positive values by two of them: the number of values below the median is binomial.
func median(values []float64, confidence float64) Interval {
	low, high := medianOrder(len(values), confidence)
	s := sorted(values)
	i := Interval{0, Median(s), math.Inf(1)}
	if low > 0 {
		i.Low = s[low-1]
	}
	if high <= len(s) {
		i.High = s[high-1]
	}
	return i
}

// medianOrder returns the order statistics, from 1, that bound the median of n values at a confidence. 0 and n + 1
// are beyond the values. Where the lower and the upper neighbour are equally likely, the lower one comes first.
func medianOrder(n int, confidence float64) (low, high int) {
	low = n / 2
	high = low + 1
	for covered := halves(n, low); covered < confidence && (low > 0 || high <= n); {
		if n-low < high { // the lower neighbour is as close to the middle
			low--
			covered += halves(n, low)
		} else {
			covered += halves(n, high)
			high++
		}
	}
	return low, high
}

// halves returns the probability of k heads in n throws of a coin.
func halves(n, k int) float64 {
	if k < 0 || k > n {
		return 0
	}
	all, _ := math.Lgamma(float64(n + 1))
	heads, _ := math.Lgamma(float64(k + 1))
	tails, _ := math.Lgamma(float64(n - k + 1))
	return math.Exp(all - heads - tails - float64(n)*math.Ln2)
}
