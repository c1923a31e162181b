package main

import (
	"math"
	"slices"
)

// rankCorrelation is Spearman's: 1 where one list rises exactly as the other does, -1
// where it falls. Equal values share the mean of their ranks. NaN without two values, or
// where one list is constant.
func rankCorrelation(xs, ys []float64) float64 {
	if len(xs) != len(ys) || len(xs) < 2 {
		return math.NaN()
	}
	x := ranks(xs)
	y := ranks(ys)
	middle := float64(len(xs)+1) / 2
	var both, xx, yy float64
	for i := range x {
		both += (x[i] - middle) * (y[i] - middle)
		xx += (x[i] - middle) * (x[i] - middle)
		yy += (y[i] - middle) * (y[i] - middle)
	}
	return both / math.Sqrt(xx*yy)
}

func ranks(values []float64) []float64 {
	sorted := slices.Sorted(slices.Values(values))
	all := make([]float64, len(values))
	for i, v := range values {
		first, _ := slices.BinarySearch(sorted, v)
		last := first
		for last < len(sorted) && sorted[last] == v {
			last++
		}
		all[i] = float64(first+1+last) / 2
	}
	return all
}
