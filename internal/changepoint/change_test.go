package changepoint

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// series returns a level with noise of a kind, at times of scheduled tests.
func series(rng *rand.Rand, kind string, n int) []float64 {
	values := make([]float64, n)
	slow := 0.0
	for i := range values {
		slow = 0.3*slow + rng.NormFloat64()*0.95
		dev := 0.02
		switch kind {
		case "noisy":
			dev = 0.12
		case "outliers":
			if rng.IntN(25) == 0 {
				dev = -1
			}
		}
		v := 100 * math.Exp(dev*slow)
		switch {
		case dev < 0:
			v = 100 * (0.3 + 0.3*rng.Float64())
		case kind == "two modes" && rng.IntN(3) == 0:
			v *= 0.75
		case kind == "daily swing":
			v *= 1 + 0.06*math.Sin(2*math.Pi*float64(i)/24)
		}
		values[i] = v
	}
	return values
}

func TestLast_FalseAlarmsAndDelay(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, kind := range []string{"quiet", "noisy", "two modes", "daily swing", "outliers"} {
		alarms, results := 0, 0
		var delays []float64
		for range 12 {
			quiet := series(rng, kind, 400)
			for end := Before + After; end <= len(quiet); end++ {
				results++
				if _, ok := Last(quiet[:end]); ok {
					alarms++
				}
			}
			fallen := series(rng, kind, 100)
			const at = 60
			for i := at; i < len(fallen); i++ {
				fallen[i] *= 0.7
			}
			for end := at + 1; end <= len(fallen); end++ {
				if _, ok := Last(fallen[:end]); ok {
					delays = append(delays, float64(end-at))
					break
				}
			}
		}
		bound := 0.001
		if kind == "noisy" { // correlated results look like a level
			bound = 0.004
		}
		if share := float64(alarms) / float64(results); share > bound {
			t.Errorf("%s: %.2g false alarms for each result", kind, share)
		}
		if kind != "two modes" && (len(delays) < 10 || stats.Median(delays) > 9) {
			t.Errorf("%s: a fall to 70 %% is seen in %d of 12 series, after %v results", kind, len(delays), stats.Median(delays))
		}
	}
}

func TestAll_FindsChanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	values := series(rng, "quiet", 240)
	for i := 80; i < 160; i++ {
		values[i] *= 0.5
	}
	changes := All(values)
	if len(changes) != 2 || changes[0].At != 80 || changes[1].At != 160 {
		t.Fatalf("%+v", changes)
	}
	if f := changes[0].Factor(); f < 0.45 || f > 0.55 {
		t.Errorf("factor %v", f)
	}
}

func TestLast_FewResults(t *testing.T) {
	values := []float64{10, 10.1, 9.9, 10, 10.2, 10.1, 9.8, 10, 10.1, 9.9, 10.05, 9.95, 5, 5.1, 4.9, 5.05, 4.95}
	c, ok := Last(values)
	if !ok || !c.LowConfidence {
		t.Errorf("%+v, %v", c, ok)
	}
	if _, ok := Last(values[:16]); ok {
		t.Error("16 results are too few to decide")
	}
	same := make([]float64, 100)
	for i := range same {
		same[i] = 7
	}
	if _, ok := Last(same); ok {
		t.Error("all the same is no change")
	}
}

// TestLast_EqualValues checks series of values that hardly vary, as round trips in microseconds.
func TestLast_EqualValues(t *testing.T) {
	series := func(before, after []float64) []float64 {
		return append(slices.Repeat(before, Before/len(before)), slices.Repeat(after, After/len(after))...)
	}
	for name, c := range map[string]struct {
		values []float64
		want   bool
	}{
		"a step":                     {series([]float64{20}, []float64{25}), true},
		"a step of two values each":  {series([]float64{20, 21}, []float64{25, 26}), true},
		"the same":                   {series([]float64{20}, []float64{20}), false},
		"a value of both":            {series([]float64{20, 25}, []float64{25}), false},
		"half of the new are as old": {series([]float64{20}, []float64{20, 25}), false},
	} {
		if change, ok := Last(c.values); ok != c.want {
			t.Errorf("%s: %+v, %v", name, change, ok)
		}
	}
}

// A fall stays one for as long as the level before has not returned; a dip that has is none.
func TestFallen(t *testing.T) {
	level := func(n int, value float64) (all []float64) {
		for i := range n {
			all = append(all, value*(1+0.02*float64(i%4)))
		}
		return all
	}
	for name, c := range map[string]struct {
		values  []float64
		from    int // the first fallen result; -1: none
		to, all int
	}{
		"never":            {level(90, 38), -1, 0, 90},
		"for good":         {append(level(36, 38), level(40, 21)...), 36, 76, 76},
		"and returned":     {append(append(level(36, 38), level(20, 21)...), level(20, 37)...), 36, 56, 76},
		"and half way":     {append(append(level(36, 38), level(20, 12)...), level(20, 21)...), 36, 76, 76},
		"faster than ever": {append(level(36, 21), level(40, 38)...), -1, 0, 76},
	} {
		fallen := Fallen(c.values)
		for i, is := range fallen {
			near := c.from >= 0 && (i == c.from-1 || i == c.from || i == c.to || i == c.to-1)
			if want := c.from >= 0 && i >= c.from && i < c.to; is != want && !near || len(fallen) != c.all {
				t.Errorf("%s: result %d of %d: %v", name, i, len(fallen), is)
			}
		}
	}
}
