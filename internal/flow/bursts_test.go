package flow

import (
	"math"
	"testing"
)

func TestStepsAreLogarithmic(t *testing.T) {
	for rate := 1.0; rate < 1e13; rate *= 1.0037 {
		want := min(max(int(math.Floor((math.Log2(rate)-slowest)*perOctave)), 0), burstSteps-1)
		if got := stepOf(rate); got != want {
			t.Errorf("%g bytes/s: step %d, want %d", rate, got, want)
		}
	}
}
