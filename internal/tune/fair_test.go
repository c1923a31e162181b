package tune

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// sharing returns two connections to one far end. weight is the first one's share of the path against a second of 1.
func sharing(path *simpath.Path, weight func(transfer.Spec) float64) (main, second *simpeer.Peer) {
	main, second = simpeer.New(path, 1), simpeer.New(path, 2)
	weights := make(chan float64, 1)
	main.Share = func(s transfer.Spec) float64 {
		if s.Time != fairLeast || s.Program.RequestResponse {
			return 1 // alone
		}
		w := weight(s)
		weights <- w
		return w / (1 + w)
	}
	second.Share = func(transfer.Spec) float64 { return 1 / (1 + <-weights) }
	return main, second
}

// A way to send that takes from its neighbour what it gains is no answer for fair, though it is
// one for throughput; one that fills what loss left empty is for both.
func TestTune_Fair(t *testing.T) {
	lossy := func() *simpath.Path {
		path := narrow()
		path.AutoWindow, path.Loss = 4*path.BDP(), 0.003
		return path
	}
	for _, c := range []struct {
		name   string
		weight func(transfer.Spec) float64
		chosen bool
	}{
		{"both get half", func(transfer.Spec) float64 { return 1 }, true},
		{"bbr and streams starve it", func(s transfer.Spec) float64 {
			if s.Near.Congestion == "bbr" || s.Streams > 1 {
				return 200
			}
			return 1
		}, false},
	} {
		main, second := sharing(lossy(), c.weight)
		d := run(t, main, func(cfg *Config) { cfg.Goal, cfg.Second, cfg.Budget = Fair, second, 3*time.Minute })
		if (d.Chosen != nil) != c.chosen {
			t.Errorf("%s: %s: %+v", c.name, d.Reason.Code, d.Chosen)
		}
		if c.chosen && (d.Others == nil || d.After == nil || d.Others.Factor < 0.9) {
			t.Errorf("%s: others %+v, after %+v", c.name, d.Others, d.After)
		}
		for _, r := range d.Remedies {
			starves := !c.chosen && (r.Setup.Congestion == "bbr" || r.Setup.Streams > 1)
			if starves && (r.Others <= 0 || r.Others > 0.1) {
				t.Errorf("%s: others keep %v of theirs with %s", c.name, r.Others, r.Name)
			}
		}
		for _, trial := range d.Trials {
			if trial.shared {
				t.Errorf("%s: %s shared the link and is reported as a run without the second flow", c.name, trial.name())
			}
		}
	}
}

// Longer transfers keep the factor of the budget of the goal Fair.
func TestLengthen_KeepsFairBudgetFactor(t *testing.T) {
	for _, goal := range []Goal{Throughput, Fair} {
		l := looped(Path{CapacityBps: 9e6, BottleneckBps: 9.3e6, RTT: 300 * time.Millisecond, MSS: 1448})
		l.cfg.Goal = goal
		l.path.round, l.path.knee = l.path.RTT, 340e3
		l.allow()
		l.lengthen(longest)
		want := l.searchConfig().Budget().Time
		if goal == Fair {
			want *= fairBudgets
		}
		if l.budget.Time != want {
			t.Errorf("%s: %v, want %v", goal, l.budget.Time, want)
		}
	}
}
