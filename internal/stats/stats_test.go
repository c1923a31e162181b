package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestStudent(t *testing.T) {
	for _, c := range []struct{ p, dof, want float64 }{{0.975, 1, 12.706}, {0.975, 4, 2.776}, {0.95, 10, 1.812},
		{0.5, 3, 0}, {0.05, 10, -1.812}, {0.9995, 1, 636.619}, {0.975, 1000, 1.962}} {
		if got := Student(c.p, c.dof); math.Abs(got-c.want) > 0.001 {
			t.Errorf("t(%v, %v) = %v, want %v", c.p, c.dof, got, c.want)
		}
	}
}

// TestMedianOrder compares with tables of the sign test. Our interval may end one value earlier at the upper end.
func TestMedianOrder(t *testing.T) {
	for _, c := range []struct{ n, low, high int }{{5, 0, 5}, {6, 1, 6}, {7, 1, 7}, {8, 1, 7}, {10, 2, 9}, {20, 6, 15},
		{25, 8, 18}, {50, 18, 32}, {100, 40, 60}} {
		if low, high := medianOrder(c.n, 0.95); low != c.low || high != c.high {
			t.Errorf("of %d values: %d and %d, want %d and %d", c.n, low, high, c.low, c.high)
		}
	}
}

// TestEstimate_Coverage checks that a 95 % interval contains the true value in about 95 of 100 cases of
// multiplicative noise.
func TestEstimate_Coverage(t *testing.T) {
	const cases = 4000
	for _, n := range []int{2, 3, 5, 6, 10, 20} {
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		measure := func(truth float64) []float64 {
			values := make([]float64, n)
			for i := range values {
				values[i] = truth * math.Exp(0.05*rng.NormFloat64())
			}
			return values
		}
		estimate, gain := 0, 0
		for range cases {
			if i := Estimate(measure(94e6), 0.95); i.Low <= 94e6 && 94e6 <= i.High {
				estimate++
			}
			if i := Gain(measure(2e6), measure(20e6), 0.95); i.Low <= 10 && 10 <= i.High {
				gain++
			}
		}
		for name, covered := range map[string]int{"estimate": estimate, "gain": gain} {
			if share := float64(covered) / cases; share < 0.94 {
				t.Errorf("%s of %d runs: the interval contains the true value in %.1f %%", name, n, 100*share)
			}
		}
	}
}

// TestPooledGain_Coverage checks that pooled noise keeps the coverage and makes the interval of two pairs useful.
func TestPooledGain_Coverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	pair := func() float64 { return math.Exp(0.1 * rng.NormFloat64()) }
	const cases = 4000
	covered, width := 0, 0.0
	for range cases {
		earlier := make([]float64, 6)
		for i := range earlier {
			earlier[i] = 0.1 * rng.NormFloat64()
		}
		known := Pool(Noise{}, earlier)
		i := PooledGain([]float64{1, 1}, []float64{2 * pair(), 2 * pair()}, 0.95, known)
		if i.Low <= 2 && 2 <= i.High {
			covered++
		}
		width += math.Log(i.High/i.Low) / cases
	}
	if share := float64(covered) / cases; share < 0.93 {
		t.Errorf("the interval contains the true value in %.1f %%", 100*share)
	}
	if width > 0.5 {
		t.Errorf("an interval of two pairs is × %.2f wide", math.Exp(width))
	}
	if plain, pooled := Gain([]float64{1, 1}, []float64{2, 3}, 0.95), PooledGain([]float64{1, 1}, []float64{2, 3}, 0.95,
		Noise{}); plain != pooled {
		t.Errorf("without earlier pairs %v, not %v", pooled, plain)
	}
}

func TestFewValues(t *testing.T) {
	if i := Estimate(nil, 0.95); !math.IsNaN(i.Mid) {
		t.Errorf("an estimate of nothing: %v", i)
	}
	if i := Estimate([]float64{5}, 0.95); math.Abs(i.Mid-5) > 1e-9 || i.Low != 0 || !math.IsInf(i.High, 1) ||
		i.Within(0.5) {
		t.Errorf("one value: %v", i)
	}
	if i := Gain([]float64{1}, nil, 0.95); !math.IsNaN(i.Mid) {
		t.Errorf("a gain without an after: %v", i)
	}
	if i := Estimate([]float64{100, 101, 99}, 0.95); !i.Within(0.03) || i.Within(0.001) {
		t.Errorf("three values: %v", i)
	}
}

// TestGain_CancelsDrift checks that drift common to both sides of each pair does not widen the interval.
func TestGain_CancelsDrift(t *testing.T) {
	before, after := []float64{10, 20, 40, 80}, []float64{20.1, 39.9, 80.2, 160}
	if g := Gain(before, after, 0.95); !g.Within(0.02) || math.Abs(g.Mid-2) > 0.02 {
		t.Errorf("gain %v", g)
	}
}

func TestPool(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	groups := make([][]float64, 20)
	for g := range groups {
		for range 5 {
			groups[g] = append(groups[g], float64(g)+0.03*rng.NormFloat64())
		}
	}
	if n := Pool(Noise{}, groups...); n.DOF != 80 || n.Dev < 0.025 || n.Dev > 0.035 {
		t.Errorf("pooled %v, want 0.03 from 80", n)
	}
	groups[0][0] -= 1 // one run stalled
	if n := Pool(Noise{}, groups...); n.Dev > 0.04 {
		t.Errorf("one stalled run made the noise %v", n.Dev)
	}
	if n := Pool(Noise{0.02, 2}, []float64{1, 1}); n.Dev < 0.01 {
		t.Errorf("two equal values look exact: %v", n)
	}
}

func TestMiddle(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{1, 3}, 2}, {[]float64{-9, 1, 2}, 1}, {[]float64{-9, 1, 2, 3, 4}, 2}} {
		if got := Middle(c.values); got != c.want {
			t.Errorf("middle of %v is %v", c.values, got)
		}
	}
}

// TestInterval_Bounds checks that an interval that is too wide to be of use has no bounds.
func TestInterval_Bounds(t *testing.T) {
	for _, c := range []struct {
		values  []float64
		bounded bool
	}{{[]float64{4.6}, false}, {[]float64{4.6, 1.1}, false}, {[]float64{4.6, 2.2}, false}, {[]float64{4.6, 3.7}, true},
		{[]float64{4.6, 1.1, 4.5, 4.8}, true}} {
		if got := Estimate(c.values, 0.95).Bounds(); (got != nil) != c.bounded {
			t.Errorf("%v: %v", c.values, got)
		}
	}
}
