package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestShift(t *testing.T) {
	four := []float64{1, 2, 3, 4}
	for _, c := range []struct {
		name          string
		before, after []float64
		confidence    float64
		low, mid      float64
	}{
		{"all of one above all of the other", four, []float64{10, 11, 12, 13}, 0.95, 2.5, 4.8},
		{"too few for 95 %", four[:3], []float64{10, 11, 12}, 0.95, 0, 5.5},
		{"too few for 99.9 %", four, []float64{10, 11, 12, 13}, 0.999, 0, 4.8},
		{"alike", four, four, 0.95, 0.25, 1},
	} {
		got := Shift(c.before, c.after, c.confidence)
		if math.Abs(got.Low-c.low) > 0.02*c.low || math.Abs(got.Mid-c.mid) > 0.03*c.mid ||
			(got.Low == 0) != math.IsInf(got.High, 1) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	if got := Shift(nil, four, 0.95); !math.IsNaN(got.Mid) || got.Low != 0 {
		t.Errorf("of nothing: %+v", got)
	}
}

func TestRankSums(t *testing.T) {
	want := []float64{1, 1, 2, 2, 2, 1, 1} // of 10 ways to rank two among five
	got := rankSums(2, 3)
	for u, w := range want {
		if math.Abs(got[u]-w/10) > 1e-12 {
			t.Errorf("%v", got)
		}
	}
}

// TestShift_Coverage checks the coverage for light and heavy tails.
func TestShift_Coverage(t *testing.T) {
	const cases, n = 4000, 6
	rng := rand.New(rand.NewPCG(4, 4))
	missed := 0
	for range cases {
		var before, after []float64
		for range n {
			before = append(before, math.Pow(rng.Float64(), -2)) // no mean
			after = append(after, 3*math.Pow(rng.Float64(), -2))
		}
		if got := Shift(before, after, 0.95); got.Low > 3 || got.High < 3 {
			missed++
		}
	}
	if share := float64(missed) / cases; share > 0.055 {
		t.Errorf("missed in %.1f %%", 100*share)
	}
}
