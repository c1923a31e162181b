package search

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestBarnard_KnownChances has chances that follow by hand: for outcomes without exception the largest value of
// q^n (1-q)^m, and of two runs nothing.
func TestBarnard_KnownChances(t *testing.T) {
	for _, c := range []struct {
		x, n, y, m int
		want       float64
	}{
		{2, 2, 0, 2, 1.0 / 16},
		{2, 2, 0, 3, math.Pow(0.4, 2) * math.Pow(0.6, 3)},
		{3, 3, 0, 3, 1.0 / 64},
		{4, 4, 0, 4, 1.0 / 256},
		{0, 3, 3, 3, 1},
		{3, 3, 3, 3, 1},
	} {
		if got := barnard(c.x, c.n, c.y, c.m); math.Abs(got-c.want) > 1e-4 {
			t.Errorf("%d of %d, %d of %d: %.5f, want %.5f", c.x, c.n, c.y, c.m, got, c.want)
		}
	}
}

// playExceedance runs an Exceedance until it is decided or that many runs are made.
func playExceedance(rng *rand.Rand, runs int, level float64, baseline, candidate func(*rand.Rand) float64) *Exceedance {
	e := NewExceedance(level, 1, rng.Uint64())
	for e.total() < runs {
		number, more := e.Next()
		if !more {
			break
		}
		goodput := baseline
		if number == 1 {
			goodput = candidate
		}
		e.Observe(number, goodput(rng))
	}
	return e
}

// scattered returns runs with a median in bit/s and a standard deviation of their logarithm, at most the link's rate.
func scattered(median, dev, link float64) func(*rand.Rand) float64 {
	return func(rng *rand.Rand) float64 { return min(link, median*math.Exp(dev*rng.NormFloat64())) }
}

// TestExceedance_ErrorRate checks that runs of one distribution show a gain in 1 % of the comparisons at most and make
// one likely in 5 %, wherever the level lies, with all looks together.
func TestExceedance_ErrorRate(t *testing.T) {
	const cases = 1000
	for _, level := range []float64{0.5, 0.9, 1, 1.2, 1.9} {
		for _, runs := range []int{5, 8, 2 * maxRuns} {
			rng := rand.New(rand.NewPCG(11, uint64(runs)))
			equal := scattered(1, 0.5, 2)
			var shown, likely float64
			for range cases {
				e := playExceedance(rng, runs, level, equal, equal)
				switch {
				case e.Outcome() == Change:
					shown += 1.0 / cases
				case e.Outcome() == Inconclusive && e.Chance() <= LikelyChance:
					likely += 1.0 / cases
				}
			}
			// Two standard errors of the simulation above the bound.
			if shown > ComparisonError+0.006 || shown+likely > 0.05+0.014 {
				t.Errorf("level %g, %d runs: shown in %.2f %%, likely in %.2f %% among equals", level, runs, 100*shown,
					100*likely)
			}
		}
	}
}

// TestExceedance_SteadyCandidate checks that a candidate at the link's rate needs few runs, however much a baseline
// below it scatters.
func TestExceedance_SteadyCandidate(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 1))
	for _, c := range []struct{ baseline, dev float64 }{{6.7, 0.6}, {11, 0.3}} {
		const cases = 300
		var runs, shown float64
		for range cases {
			e := playExceedance(rng, 2*maxRuns, 0.95*23.9, scattered(c.baseline, c.dev, 23.9), scattered(23.9, 0.01, 24))
			runs += float64(e.total()) / cases
			if e.Outcome() == Change {
				shown += 1.0 / cases
			}
		}
		if shown < 0.97 || runs > 9 {
			t.Errorf("a baseline of %g: shown in %.0f %% after %.1f runs", c.baseline, 100*shown, runs)
		}
	}
}
