package search

import (
	"math"
	"math/rand/v2"
	"testing"
)

// playUnpaired runs an Unpaired of runs in Mbit/s, at most as many as are left.
func playUnpaired(rng *rand.Rand, left int, baseline, candidate func(*rand.Rand) float64) *Unpaired {
	u := NewUnpaired(0.01, rng.Uint64())
	for {
		number, more := u.Next(left - u.total())
		if !more {
			return u
		}
		goodput := baseline
		if number == 1 {
			goodput = candidate
		}
		u.Observe(number, 1e6*goodput(rng))
	}
}

// scattered returns runs with a median in Mbit/s and a standard deviation of their logarithm, at most the link's rate.
func scattered(median, dev, link float64) func(*rand.Rand) float64 {
	return func(rng *rand.Rand) float64 { return min(link, median*math.Exp(dev*rng.NormFloat64())) }
}

func TestUnpaired_ErrorRate(t *testing.T) {
	cases := 1200
	if testing.Short() {
		cases = 300
	}
	for _, c := range []struct {
		name                string
		baseline, candidate func(*rand.Rand) float64
		most                float64
	}{
		{"both scatter", scattered(10, 0.4, 1e3), scattered(10, 0.4, 1e3), ComparisonError},
		{"both scatter little", scattered(10, 0.1, 1e3), scattered(10, 0.1, 1e3), ComparisonError},
		{"only the baseline", scattered(10, 0.4, 1e3), scattered(10, 0.02, 1e3), ComparisonError},
		{"only the candidate", scattered(10, 0.02, 1e3), scattered(10, 0.4, 1e3), ComparisonError},
		// A third of the runs reaches the link's rate exactly: a few such runs look steady.
		{"up to the link's rate", scattered(1.6, 0.45, 1.93), scattered(1.6, 0.45, 1.93), 2 * ComparisonError},
	} {
		for _, left := range []int{12, 40} {
			rng := rand.New(rand.NewPCG(11, uint64(left)))
			shown := 0
			for range cases {
				if playUnpaired(rng, left, c.baseline, c.candidate).Outcome() == Change {
					shown++
				}
			}
			// Two standard errors of the simulation above the bound.
			most := c.most + 2*math.Sqrt(c.most/float64(cases))
			if share := float64(shown) / float64(cases); share > most {
				t.Errorf("%s, %d runs: %.2f %% of comparisons among equals show a gain", c.name, left, 100*share)
			}
		}
	}
}

// TestUnpaired_Allocation checks that a steady candidate gets few runs and a scattered baseline many, and that the gain
// is shown by them.
func TestUnpaired_Allocation(t *testing.T) {
	for _, c := range []struct {
		name                string
		baseline, candidate func(*rand.Rand) float64
		left                int
		shown, ratio        float64 // least share of cases; least number of baseline runs for one of the candidate
	}{
		{"20 Mbit/s, 40 ms", scattered(12.9, 0.2, 19.2), scattered(19.2, 0.01, 1e3), 20, 0.9, 1.5},
		{"2 Mbit/s, 300 ms", scattered(1.5, 0.4, 1.93), scattered(1.93, 0.01, 1e3), 40, 0.8, 2.5},
	} {
		rng := rand.New(rand.NewPCG(12, 1))
		const cases = 400
		var shown, baseline, candidate float64
		for range cases {
			u := playUnpaired(rng, c.left, c.baseline, c.candidate)
			if u.Outcome() == Change {
				shown += 1.0 / cases
			}
			baseline += float64(u.Runs(0)) / cases
			candidate += float64(u.Runs(1)) / cases
		}
		if shown < c.shown || baseline < c.ratio*candidate {
			t.Errorf("%s: shown in %.0f %%, %.1f runs of the baseline and %.1f of the candidate", c.name, 100*shown, baseline,
				candidate)
		}
	}
}

// TestUnpaired_Needs checks that as many further runs as a comparison asks for decide most comparisons.
func TestUnpaired_Needs(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 1))
	baseline, candidate := scattered(1.5, 0.4, 1.93), scattered(1.93, 0.01, 1e3)
	const cases = 300
	open, decided := 0, 0
	for range cases {
		first := playUnpaired(rng, 6, baseline, candidate)
		if first.Outcome() != Inconclusive {
			continue
		}
		open++
		needs := first.Needs()
		if needs <= 0 {
			t.Fatalf("open, and %d more runs would decide", needs)
		}
		if playUnpaired(rng, first.total()+needs, baseline, candidate).Outcome() != Inconclusive {
			decided++
		}
	}
	if open < cases/2 || decided < open*6/10 {
		t.Errorf("%d of %d are open, %d of them are decided by the runs that they ask for", open, cases, decided)
	}
}
