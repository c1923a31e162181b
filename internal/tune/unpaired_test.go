package tune

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// TestUnpaired_ScatteredPaths checks that, where a few losses scatter single runs, the comparison takes 90 s at most
// and shows the gain, or says how many more runs and which budget would; that budget decides most of the rest.
func TestUnpaired_ScatteredPaths(t *testing.T) {
	t.Parallel()
	const seeds = 40
	for _, c := range []struct {
		name         string
		path         simpath.Path
		first, after int // least number of seeds that are decided, and that are so with the proposed budget
	}{
		// Loss and scatter give the goodputs that the kernel's CUBIC has at 0.1 % and 0.5 %.
		{"20 Mbit/s, 40 ms", simpath.Path{RateBps: 20e6, RTT: 40 * time.Millisecond, Loss: 0.0004, LossScatter: 0.4}, 34, 38},
		{"2 Mbit/s, 300 ms", simpath.Path{RateBps: 2e6, RTT: 300 * time.Millisecond, Loss: 0.00225, LossScatter: 0.9}, 0, 26},
	} {
		first, after := 0, 0
		for seed := range uint64(seeds) {
			path := c.path
			path.MSS = 1448
			path.Queue = 100e3
			path.Harm = 1
			path.Noise = simpath.Noise{Dev: 0.01}
			path.AutoWindow = 4 * path.BDP()
			path.EarlyBps = path.CapacityBps()
			path.EarlyFor = 8 * path.RTT
			d := run(t, simpeer.New(&path, seed), func(cfg *Config) { cfg.Seed = seed })
			var inTurn time.Duration
			for _, trial := range d.Trials {
				if trial.inTurn {
					inTurn += trial.elapsed
				}
			}
			checkRunsOfGain(t, &d)
			if inTurn > 2*unpairedTime || inTurn > unpairedTime && d.Verdict == search.Change {
				t.Errorf("%s, seed %d: %s after %v of comparisons", c.name, seed, d.Reason.Code, inTurn)
			}
			switch {
			case d.Verdict != search.Inconclusive:
				first++
				after++
				continue
			case d.Open == nil || d.Reason.Code == NeedsRuns && d.Open.More <= 0:
				t.Errorf("%s, seed %d: %s: %+v", c.name, seed, d.Reason.Code, d.Open)
				continue
			}
			again := run(t, simpeer.New(&path, seed+seeds), func(cfg *Config) {
				cfg.Seed = seed
				cfg.Budget = d.Open.Budget
			})
			if d.Open.Budget > 0 && again.Verdict != search.Inconclusive {
				after++
			}
		}
		if first < c.first || after < c.after {
			t.Errorf("%s: %d of %d are decided, %d with the budget that they ask for", c.name, first, seeds, after)
		}
	}
}

// checkRunsOfGain checks that a candidate's goodput is that of the runs which its gain is of.
func checkRunsOfGain(t *testing.T, d *Direction) {
	t.Helper()
	for _, r := range d.Remedies {
		var inTurn []float64
		for _, trial := range d.Trials {
			if trial.inTurn && trial.Setup == r.Setup && r.BaselineRuns > 0 {
				inTurn = append(inTurn, trial.Goodput)
			}
		}
		if len(inTurn) > 0 && r.Goodput != stats.Typical(inTurn) {
			t.Errorf("%s: %.0f bit/s, but a gain of %.2f of runs with %.0f", r.Name, r.Goodput, r.Gain.Mid, inTurn)
		}
	}
}
