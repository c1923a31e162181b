package main

import (
	"math"
	"testing"
)

func TestRankCorrelation(t *testing.T) {
	for _, tt := range []struct {
		xs, ys []float64
		want   float64
	}{
		{[]float64{1, 2, 3}, []float64{10, 400, 5000}, 1},
		{[]float64{1, 2, 3}, []float64{3, 2, 1}, -1},
		// Worked by hand: ranks 1 2.5 2.5 4 against 1 3 2 4.
		{[]float64{1, 5, 5, 9}, []float64{1, 3, 2, 4}, 4.5 / math.Sqrt(4.5*5)},
	} {
		if got := rankCorrelation(tt.xs, tt.ys); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%v against %v: %v, want %v", tt.xs, tt.ys, got, tt.want)
		}
	}
	for _, xs := range [][]float64{nil, {1}, {2, 2}} {
		if got := rankCorrelation(xs, xs); !math.IsNaN(got) {
			t.Errorf("%v: %v, want NaN", xs, got)
		}
	}
}
