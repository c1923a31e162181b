package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
)

const minKept = 0.98 // share of the paths that keep all promises

// TestSearch_KeepsPromises runs the search on random noisy paths whose truth is known.
// FULLPIPE_SHOW=1 prints the paths on which a promise broke, trial by trial.
func TestSearch_KeepsPromises(t *testing.T) {
	const paths = 1000
	for _, seed := range []uint64{1, 2, 3, 4} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			kept := keep(t, seed, paths)
			t.Logf("%.1f %% of the paths keep every promise", 100*float64(kept)/paths)
			if float64(kept) < minKept*paths {
				t.Errorf("only %d of %d paths keep every promise", kept, paths)
			}
		})
	}
}

// TestSearch_KeepsPromisesWithOtherSeeds keeps the search from being fitted to four seeds.
func TestSearch_KeepsPromisesWithOtherSeeds(t *testing.T) {
	const paths = 500
	seeds := 12
	if testing.Short() {
		seeds = 2
	}
	kept := 0
	for seed := range uint64(seeds) {
		kept += keep(t, 1000+seed, paths)
	}
	t.Logf("%.2f %% of %d paths keep every promise", 100*float64(kept)/float64(seeds*paths), seeds*paths)
	if float64(kept) < minKept*float64(seeds*paths) {
		t.Errorf("only %d of %d paths keep every promise", kept, seeds*paths)
	}
}

func keep(t *testing.T, seed uint64, paths int) (kept int) {
	for i := range uint64(paths) {
		rng := rand.New(rand.NewPCG(seed, i))
		run := follow(simpath.Random(rng), rng, i)
		if broken := run.broken(); broken == "" {
			kept++
		} else if os.Getenv("FULLPIPE_SHOW") != "" {
			t.Logf("path %d: %s: %s", i, broken, run)
		}
		if run.overspent() {
			t.Errorf("seed %d, path %d: spent %v of %v", seed, i, run.Spent, run.cfg.Budget())
		}
	}
	return kept
}

type outcome struct {
	Answer
	cfg    Config
	path   *simpath.Path
	trials int
	log    string
}

// follow lets a search run on a path, as the loop does: the path's description comes
// from one unrestricted transfer.
func follow(path *simpath.Path, rng *rand.Rand, seed uint64) outcome {
	capacity := path.CapacityBps() * math.Exp(0.01*rng.NormFloat64())
	rtt := path.BaseRTT() + time.Duration(0.02*rng.Float64()*float64(path.Jitter))
	dev := path.Deviation(Config{MSS: path.MSS, RTT: rtt, CapacityBps: capacity, Knee: path.BDP()}.Length(0))
	cfg := Config{Noise: math.Max(0.005, dev*math.Exp(0.3*rng.NormFloat64())), MSS: path.MSS, RTT: rtt,
		CapacityBps: capacity,
		Knee:        capacity / 8 * (rtt + path.Jitter/2).Seconds(), Seed: seed}
	s := New(cfg)
	run := outcome{cfg: s.cfg, path: path}
	for at := time.Duration(0); ; run.trials++ {
		trial, more := s.Next()
		if !more {
			break
		}
		window := float64(trial.Window)
		goodput, effective := path.Measure(rng, window, at, trial.Time)
		s.Observe(trial, Outcome{GoodputBps: goodput, Window: int(effective), Clipped: effective < 0.98*window,
			Lossless: path.Lossless(effective), Elapsed: trial.Time, Bytes: min(trial.Bytes,
				int64(goodput/8*trial.Time.Seconds()))})
		at += trial.Time
		run.log += fmt.Sprintf("\n    %7.3f BDP  %.4f of capacity  (true %.4f) %s", effective/path.BDP(),
			goodput/path.CapacityBps(),
			path.Goodput(effective)/path.CapacityBps(), trial.Purpose)
	}
	run.Answer = s.Answer()
	return run
}

func (o outcome) String() string {
	p := o.path
	return fmt.Sprintf("%s window %.3f BDP shown %v after %d trials, %v of %v\n  %.3g bit/s %v jitter %v mss %d BDP "+
		"%.0f segments, loss %.2g queue %.2f BDP harm %.2f cliff %.2f auto %.2f ceiling %.2f noise %+v trial %.3f%s",
		o.Verdict, float64(o.Window)/p.BDP(), o.Shown, o.trials, o.Spent.Time.Round(time.Millisecond),
		o.cfg.Time.Round(time.Millisecond), p.RateBps, p.RTT,
		p.Jitter, p.MSS, p.BDP()/float64(p.MSS), p.Loss, p.Queue/p.BDP(), p.Harm, p.Cliff/p.BDP(), p.AutoWindow/p.BDP(),
		p.Ceiling/p.BDP(), p.Noise,
		p.Scatter(o.cfg.Length(0)), o.log)
}

// broken names the first promise that the answer breaks, judged by the truth.
func (o outcome) broken() string {
	p := o.path
	best, smallest := p.Automatic(), math.Inf(1)
	var sweep []float64
	for w := 2 * float64(p.MSS); w <= math.Min(8*p.BDP(), 1<<30)*1.0001; w *= Step {
		sweep = append(sweep, w)
		best = math.Max(best, p.Goodput(w))
	}
	for _, w := range sweep {
		if p.Goodput(w) >= Enough*best {
			smallest = w
			break
		}
	}
	automatic := p.Automatic() / best
	switch o.Verdict {
	case Change:
		share := p.Goodput(float64(o.Window)) / best
		switch {
		case share < automatic:
			return fmt.Sprintf("goodput is %.4f of automatic's", share/automatic)
		case automatic >= Enough && o.Shown:
			return fmt.Sprintf("automatic, at %.4f of the best, is as good", automatic)
		case !o.Shown && !o.canDecide():
			return ""
		case share < Enough:
			return fmt.Sprintf("goodput is %.4f of the best", share)
		case float64(o.Window) > Tolerance*smallest:
			return fmt.Sprintf("window is %.3f of the smallest that is enough", float64(o.Window)/smallest)
		}
	case NoChange:
		if automatic < Enough {
			return fmt.Sprintf("nothing changed, with automatic at %.4f of the best", automatic)
		}
	case Inconclusive:
		if automatic < Enough && (o.canDecide() || 1-automatic > 1-Enough+3*p.Scatter(o.cfg.Length(0))) {
			return fmt.Sprintf("left open, with automatic at %.4f of the best", automatic)
		}
	}
	return ""
}

// canDecide reports whether the budget resolves a difference of two windows of half of the
// 2 % that count, at 95 % on either side, after the trials that explore.
func (o outcome) canDecide() bool {
	const explore = 6
	trial := o.cfg.Length(0)
	repeats := math.Max(2, 2*math.Pow(1.64*o.path.Scatter(trial)/0.01, 2))
	return explore+3*repeats < float64(o.cfg.Time)/float64(trial)
}

func (o outcome) overspent() bool {
	budget, sweep := o.cfg.Budget(), o.cfg.Sweep()
	return o.Spent.Time > budget.Time || o.Spent.Time > sweep.Time/10 || o.Spent.Bytes > sweep.Bytes/10
}
