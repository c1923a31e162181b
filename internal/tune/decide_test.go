package tune

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// overflowing is a path on which automatic sizing overflows the queue now and then: it is
// at 94 % of what a window of a BDP carries, and runs differ by more than a percent.
func overflowing() *simpath.Path {
	p := &simpath.Path{RateBps: 500e6, RTT: 30 * time.Millisecond, MSS: 1448, Harm: 0.94,
		Noise: simpath.Noise{Dev: 0.012}}
	p.Queue, p.AutoWindow = p.BDP(), 2.4*p.BDP()
	return p
}

// A search that its share of the budget leaves open goes on with what is left.
func TestLoop_ResumesOpenSearch(t *testing.T) {
	const seeds = 40
	decided := 0
	for seed := range uint64(seeds) {
		path := overflowing()
		d := run(t, simpeer.New(path, seed), func(cfg *Config) { cfg.Seed = seed })
		if d.Verdict == search.Change {
			decided++
		} else if d.Chosen != nil || d.Verdict == search.Inconclusive && (d.Open == nil || d.Open.Budget == 0) &&
			len(d.Warnings) == 0 {
			t.Errorf("seed %d: %s: %s", seed, d.Verdict, d.Reason.Code)
		}
	}
	if decided < seeds*9/10 { // 19 of 40 where the search stopped at its share
		t.Errorf("%d of %d are decided", decided, seeds)
	}
}

// TestOpen_BudgetDecides checks that a stated budget that is too short leads to a proposal, and that the proposed
// budgets lead to a verdict.
func TestOpen_BudgetDecides(t *testing.T) {
	const seeds, times = 40, 4
	said, decided := 0, 0
	noisy := overflowing()
	noisy.Noise.Dev, noisy.Harm = 0.03, 0.93
	for seed := range uint64(seeds) {
		budget := 12 * time.Second
		for range times {
			d := run(t, simpeer.New(noisy, seed), func(cfg *Config) { cfg.Seed, cfg.Budget = seed, budget })
			if d.Open == nil || d.Open.Budget == 0 {
				if d.Verdict != search.Inconclusive {
					decided++
				}
				break
			}
			said++
			asked := d.Open.Budget
			if asked <= budget || asked > maxProposed {
				t.Fatalf("seed %d: after %s: %+v", seed, budget, d.Open)
			}
			budget = asked
		}
	}
	if said < seeds/2 || decided < seeds*9/10 {
		t.Errorf("of %d runs %d are decided; %d times a budget was proposed", seeds, decided, said)
	}
}

// TestConclude_WithinATwentieth checks that automatic sizing within a twentieth of the best is a verdict, and that
// no budget above maxProposed is proposed, however much runs scatter.
func TestConclude_WithinATwentieth(t *testing.T) {
	const seeds = 40
	answered := 0
	for seed := range uint64(seeds) {
		path := overflowing()
		path.Harm, path.Noise.Dev = 0.975, 0.02
		d := run(t, simpeer.New(path, seed), func(cfg *Config) { cfg.Seed = seed })
		if d.Open != nil && d.Open.Budget > maxProposed {
			t.Errorf("seed %d: %s", seed, d.Reason.Code)
		}
		if d.Verdict != search.Inconclusive {
			answered++
		}
	}
	if answered < seeds*9/10 {
		t.Errorf("%d of %d runs have an answer", answered, seeds)
	}
}

// TestLoop_VerifiesBeforeFurtherComparisons checks that a winner is verified before anything else is compared. On a
// path of 1 Gbit/s and 100 ms the hosts' maxima limit a connection to less than half, and the budgets allow one
// comparison and its verification, or little more.
func TestLoop_VerifiesBeforeFurtherComparisons(t *testing.T) {
	for budget := 30 * time.Second; budget <= 45*time.Second; budget += time.Second {
		path := &simpath.Path{RateBps: 1e9, RTT: 100 * time.Millisecond, MSS: 1448, AutoWindow: 3e6, Ceiling: 5.5e6,
			Noise: simpath.Noise{Dev: 0.005}}
		path.Queue = path.BDP()
		d := run(t, simpeer.New(path, 1), func(cfg *Config) { cfg.Budget = budget })
		if d.Chosen == nil || d.Gain == nil || d.Gain.Low < 1.5 {
			t.Errorf("in %v: %s: %s, %+v", budget, d.Verdict, d.Reason.Code, d.Gain)
		}
	}
}

// TestApplied_Decide has the results of a change, and whether it is kept: where it is faster, or as fast with
// clearly fewer retransmissions, as the search recommends it.
func TestApplied_Decide(t *testing.T) {
	const unknown = -1
	share := func(ratio float64) *float64 {
		if ratio == unknown {
			return nil
		}
		return &ratio
	}
	for _, c := range []struct {
		name          string
		goal          Goal
		before, after float64 // share of the bytes sent that is retransmitted
		gain          stats.Interval
		want          Code
		kept          bool
	}{
		{"faster", "", 0, 0, stats.Interval{Low: 1.1, Mid: 1.2, High: 1.3}, FasterChanged, true},
		{"as fast, 8 % fewer", "", 0.085, 0.005, stats.Interval{Low: 0.97, Mid: 1.01, High: 1.05}, AsFastChanged, true},
		{"3 % slower, 8 % fewer", Throughput, 0.085, 0.005, stats.Interval{Low: 0.95, Mid: 0.97, High: 0.99},
			AsFastChanged, true},
		{"as fast, 1 % fewer", "", 0.011, 0.001, stats.Interval{Low: 0.97, Mid: 1.01, High: 1.05}, NoGainShown, false},
		{"as fast, more", "", 0.005, 0.085, stats.Interval{Low: 0.97, Mid: 1.01, High: 1.05}, NoGainShown, false},
		{"as fast by what is known, 8 % fewer", "", 0.085, 0.005, stats.Interval{Low: 0.8, Mid: 1.01, High: 1.3},
			NoGainShown, false},
		{"6 % slower, 8 % fewer", "", 0.085, 0.005, stats.Interval{Low: 0.93, Mid: 0.94, High: 0.95}, SlowerChanged,
			false},
		{"losses are not known", "", unknown, 0.005, stats.Interval{Low: 0.97, Mid: 1.01, High: 1.05}, NoGainShown, false},
		{"another goal", Latency, 0.085, 0.005, stats.Interval{Low: 0.97, Mid: 1.01, High: 1.05}, NoGainShown, false},
	} {
		a := Applied{goal: c.goal, Gain: c.gain, Before: Measured{Retransmits: share(c.before)},
			After: Measured{Retransmits: share(c.after)}}
		a.decide(nil)
		if a.Reason.Code != c.want || a.Kept != c.kept {
			t.Errorf("%s: %s, kept %t", c.name, a.Reason.Code, a.Kept)
		}
	}
}

// TestApplied_KeepsLikely checks that a change that the search found likely is kept by the user's word alone, and not
// where its measurement contradicts.
func TestApplied_KeepsLikely(t *testing.T) {
	for _, c := range []struct {
		accept bool
		gain   stats.Interval
		want   Code
	}{
		{true, stats.Interval{Low: 0.8, Mid: 1.9, High: 4}, LikelyChanged},
		{false, stats.Interval{Low: 0.8, Mid: 1.9, High: 4}, NoGainShown},
		{true, stats.Interval{Low: 0.6, Mid: 0.9, High: 1.3}, NoGainShown},
		{true, stats.Interval{Low: 0.6, Mid: 0.8, High: 0.9}, SlowerChanged},
		{true, stats.Interval{Low: 1.1, Mid: 1.9, High: 4}, FasterChanged},
	} {
		a := Applied{Gain: c.gain, acceptLikely: c.accept}
		a.decide(nil)
		if kept := c.want == LikelyChanged || c.want == FasterChanged; a.Reason.Code != c.want || a.Kept != kept {
			t.Errorf("accepted %t, %+v: %s, kept %t", c.accept, c.gain, a.Reason.Code, a.Kept)
		}
	}
}
