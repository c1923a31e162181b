package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// play runs a comparison whose candidates have the given true factors; the path's own speed drifts
// from round to round by a random walk of drift, each run scatters by noise, and one in
// stalls runs gives a third of what it should.
func play(rng *rand.Rand, factors []float64, rounds int, noise, drift float64, stalls int) *Comparison {
	c := NewComparison(len(factors), rounds, noise/2, rng.Uint64())
	speed := 10e6
	for {
		order := c.Next()
		if len(order) == 0 {
			return c
		}
		speed *= math.Exp(drift * rng.NormFloat64())
		goodputs := map[int]float64{}
		for _, i := range order {
			factor := 1.0
			if i > 0 {
				factor = factors[i-1]
			}
			goodputs[i] = speed * factor * math.Exp(noise*rng.NormFloat64())
			if stalls > 0 && rng.IntN(stalls) == 0 {
				goodputs[i] /= 3
			}
		}
		c.Observe(goodputs)
	}
}

func TestComparison_ErrorRate(t *testing.T) {
	cases := 1500
	if testing.Short() {
		cases = 500
	}
	for _, c := range []struct {
		name         string
		noise, drift float64
		stalls       int
	}{
		{"quiet", 0.01, 0, 0}, {"lossy", 0.25, 0, 0}, {"drifting", 0.05, 0.2, 0}, {"stalling", 0.05, 0, 12},
	} {
		rng := rand.New(rand.NewPCG(3, 3))
		picked, shown := 0, 0
		for range cases {
			comparison := play(rng, []float64{1, 1, 1, 1}, 8, c.noise, c.drift, c.stalls)
			if _, ok := comparison.Best(); ok {
				picked++
			}
			for i := 1; i <= 4; i++ {
				if comparison.Gain(i).Low > 1 {
					shown++
					break
				}
			}
		}
		if share := float64(shown) / float64(cases); share > ComparisonError {
			t.Errorf("%s: %.2f %% of comparisons among equals show a gain", c.name, 100*share)
		}
		if share := float64(picked) / float64(cases); share > pickError {
			t.Errorf("%s: %.2f %% of comparisons among equals have a winner", c.name, 100*share)
		}
	}
}

func TestComparison_FindsBest(t *testing.T) {
	for _, c := range []struct {
		name    string
		factors []float64
		noise   float64
		want    int
		least   float64 // share of comparisons
	}{
		{"one that doubles among losses", []float64{1, 2, 1, 0.9}, 0.2, 2, 0.97},
		{"the preferred of two that help alike", []float64{1.9, 1.9, 1}, 0.03, 1, 0.87},
		{"a fifth, quiet", []float64{1, 1, 1.2}, 0.02, 3, 0.95},
	} {
		rng := rand.New(rand.NewPCG(5, 5))
		const cases = 500
		found := 0
		for range cases {
			if i, ok := play(rng, c.factors, 8, c.noise, 0.02, 0).Best(); ok && i == c.want {
				found++
			}
		}
		if share := float64(found) / cases; share < c.least {
			t.Errorf("%s: found in %.1f %%", c.name, 100*share)
		}
	}
}

func TestComparison_EndsEarlyWithoutGain(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	rounds := 0
	for range 200 {
		rounds += play(rng, []float64{1, 0.9, 0.95}, 8, 0.01, 0, 0).rounds
	}
	if mean := float64(rounds) / 200; mean > 2.5 {
		t.Errorf("%.1f rounds on the average to see that nothing helps", mean)
	}
}

func TestComparison_MissingRuns(t *testing.T) {
	c := NewComparison(2, 4, 0.01, 1)
	c.Observe(map[int]float64{1: 5, 2: 5}) // no baseline
	c.Observe(map[int]float64{0: 5, 1: 10})
	if c.Runs(1) != 1 || c.Runs(2) != 0 {
		t.Errorf("runs %d and %d", c.Runs(1), c.Runs(2))
	}
	if g := c.Gain(2); !math.IsNaN(g.Mid) {
		t.Errorf("a gain of nothing: %+v", g)
	}
	c.Observe(map[int]float64{0: math.NaN()})
	if _, ok := c.Best(); ok {
		t.Error("a winner after one run")
	}
}

// Of two that are as fast the preferred one is picked, also where only the other is clearly better so far.
func TestComparison_PrefersEarlierOfEquals(t *testing.T) {
	for _, c := range []struct {
		name  string
		first []float64 // Mbit/s, with a baseline of 10 and another candidate of 16 each time
		want  int
	}{
		{"as fast, and it scatters", []float64{16, 24, 9.5, 16.5, 27}, 1},
		{"not as fast, and it scatters", []float64{12.5, 16, 10, 12.6, 13}, 2},
	} {
		comparison := NewComparison(2, 8, 0.3, 1)
		for i, first := range c.first {
			baseline := 10 + 0.1*float64(i)
			comparison.Observe(map[int]float64{0: baseline, 1: first, 2: 1.6 * baseline})
		}
		if best, ok := comparison.Best(); !ok || best != c.want {
			t.Errorf("%s: %d, %v: %+v, %+v", c.name, best, ok, comparison.Gain(1), comparison.Gain(2))
		}
	}
}

// Of two candidates as fast the preferred one is picked also where the baseline scatters so much that
// their factors differ.
func TestComparison_ComparesCandidatesInCommonRounds(t *testing.T) {
	c := NewComparison(2, 8, 0.03, 1)
	for _, baseline := range []float64{3e6, 6e6, 4e6, 5e6} {
		c.Observe(map[int]float64{0: baseline, 1: 9.5e6, 2: 9.74e6})
	}
	if best, ok := c.Best(); !ok || best != 1 {
		t.Errorf("%d, %v", best, ok)
	}
}

// One that ran in a round in which the baseline was lucky is not behind another that did not.
func TestComparison_LuckyBaselineDropsNoCandidate(t *testing.T) {
	c := NewComparison(2, 8, 0.03, 1)
	c.Carries(1.923e6)
	c.Observe(map[int]float64{0: 1.903e6, 1: 1.817e6})
	c.Observe(map[int]float64{0: 0.915e6, 1: 1.816e6, 2: 1.861e6})
	if next := c.Next(); !slices.Contains(next, 1) {
		t.Errorf("the preferred one, which gives as much as the other, is out: %v", next)
	}
}

// A candidate that gave all that there is leaves nothing to those that are preferred less, which wait until it gives
// less; one that gave what the baseline did leaves them all there is to gain.
func TestComparison_StopsAtCapacity(t *testing.T) {
	for _, c := range []struct {
		name   string
		first  []float64 // goodputs of the first candidate, bit/s
		most   float64
		second bool // is the second still asked
	}{
		{"all of it", []float64{9.9e6, 9.8e6}, 10e6, false},
		{"all of it once", []float64{9.9e6}, 10e6, false},
		{"nothing yet", nil, 10e6, false},
		{"less than all", []float64{8e6}, 10e6, true},
		{"all of it once of two", []float64{9.9e6, 8e6}, 10e6, true},
		{"the capacity is not known", []float64{9.9e6, 9.8e6}, 0, true},
		{"no more than the baseline", []float64{9.9e6, 9.8e6}, 10e6, true},
	} {
		comparison := NewComparison(2, 8, 0.3, 1)
		comparison.Carries(c.most)
		baseline := 5e6
		if c.name == "no more than the baseline" {
			baseline = 9.8e6
		}
		for _, first := range c.first {
			round := map[int]float64{}
			for _, i := range comparison.Next() {
				round[i] = []float64{baseline, first, 1.02 * first}[i]
			}
			comparison.Observe(round)
		}
		if got := slices.Contains(comparison.Next(), 2); got != c.second {
			t.Errorf("%s: the second is asked again: %t", c.name, got)
		}
	}
}

// The best candidate of a comparison that was broken off is its leader, to be verified. There is none where the
// comparison was decided, or no candidate gains much.
func TestComparisonHasALeaderWhereItIsBrokenOff(t *testing.T) {
	for _, c := range []struct {
		name   string
		rounds int
		gains  []float64 // of the second candidate, by round; the first gives what the baseline does
		want   int
	}{
		{"seems better", 8, []float64{1.3, 1.2}, 2},
		{"one round only", 8, []float64{1.3}, 0},
		{"hardly better", 8, []float64{1.06, 1.04}, 0},
		{"all rounds were had", 2, []float64{1.3, 1.2}, 0},
	} {
		comparison := NewComparison(2, c.rounds, 0.3, 1)
		for _, gain := range c.gains {
			comparison.Observe(map[int]float64{0: 5e6, 1: 5e6, 2: gain * 5e6})
		}
		if got, ok := comparison.Leader(); got != c.want || ok != (c.want > 0) {
			t.Errorf("%s: %d, %t", c.name, got, ok)
		}
	}
}

// TestBest_RetransmitsLess has candidates' factors and shares of retransmitted bytes, and the baseline's share.
func TestBest_RetransmitsLess(t *testing.T) {
	for _, c := range []struct {
		name    string
		factors []float64
		ratios  []float64
		today   float64
		want    int // 0: none
	}{
		{"within 10 %, the second retransmits less", []float64{1.9, 1.76}, []float64{0.2, 0}, 0, 2},
		{"beyond 10 %, the faster one", []float64{1.9, 1.6}, []float64{0.2, 0}, 0, 1},
		{"less by 0.5 % is no less", []float64{1.9, 1.8}, []float64{0.006, 0.001}, 0, 1},
		{"of two that retransmit little, the faster one", []float64{1.9, 1.74, 1.85}, []float64{0.2, 0, 0}, 0, 3},
		{"8 % for a fifth retransmitted is nothing", []float64{1.08}, []float64{0.2}, 0, 0},
		{"8 % without that is something", []float64{1.08}, []float64{0}, 0, 1},
		{"2 % without the tenth that the baseline retransmits", []float64{1.02}, []float64{0}, 0.1, 1},
		{"2 % without that, within 10 % of one with it", []float64{1.09, 1.02}, []float64{0.1, 0}, 0.1, 2},
		{"4 % less without that", []float64{0.96}, []float64{0}, 0.1, 1},
		{"6 % less is no remedy", []float64{0.94}, []float64{0}, 0.1, 0},
		{"as fast without 1.5 % retransmitted", []float64{0.999}, []float64{0}, 0.015, 0},
	} {
		comparison := NewComparison(len(c.factors), 8, 0.005, 1)
		for order := comparison.Next(); len(order) > 0; order = comparison.Next() {
			goodputs := map[int]float64{}
			for _, i := range order {
				goodputs[i] = 10e6
				ratio := c.today
				if i > 0 {
					goodputs[i] *= c.factors[i-1]
					ratio = c.ratios[i-1]
				}
				comparison.Retransmits(i, ratio)
			}
			comparison.Observe(goodputs)
		}
		if got, _ := comparison.Best(); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
