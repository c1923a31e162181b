package search

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
)

// path is 100 Mbit/s and 40 ms with a deep queue, quiet, and a system that stops at 64 KiB.
func path() *simpath.Path {
	return &simpath.Path{RateBps: 100e6, RTT: 40 * time.Millisecond, MSS: 1460, Queue: 1e6, Harm: 1, AutoWindow: 65535,
		Noise: simpath.Noise{Dev: 0.003}}
}

func TestSearch_Answer(t *testing.T) {
	bdp := path().BDP()
	for _, c := range []struct {
		name      string
		change    func(*simpath.Path)
		verdict   Verdict
		low, high float64 // the window in BDP
	}{
		{"automatic sizing stops early", func(*simpath.Path) {}, Change, 0.98, 1.15},
		{"automatic sizing is good", func(p *simpath.Path) { p.AutoWindow = 4 * bdp }, NoChange, 0, 0},
		{"a shallow queue punishes what is large", func(p *simpath.Path) {
			p.AutoWindow, p.Queue, p.Harm = 8*bdp, 0.05*bdp, 0.7
		}, Change, 0.98, 1.06},
		{"a middlebox drops above half the path's window", func(p *simpath.Path) {
			p.AutoWindow, p.Cliff, p.Harm = 8*bdp, 0.5*bdp, 0.3
		}, Change, 0.47, 0.52},
		{"requests are clipped below the path's window", func(p *simpath.Path) { p.AutoWindow, p.Ceiling = 30000, 65535 },
			Change, 0.125, 0.14},
		{"loss limits, not the window", func(p *simpath.Path) { p.AutoWindow, p.Loss = 8*bdp, 0.01 }, Inconclusive, 0, 0},
		{"noise leaves it open", func(p *simpath.Path) { p.AutoWindow, p.Noise.Dev = 0.97*bdp, 0.2 }, Inconclusive, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := path()
			c.change(p)
			run := follow(p, rand.New(rand.NewPCG(1, 1)), 1)
			if window := float64(run.Window) / bdp; run.Verdict != c.verdict || window < c.low || window > c.high {
				t.Errorf("want %s at %v to %v BDP: %s", c.verdict, c.low, c.high, run)
			}
			if clipped := p.Ceiling > 0; run.Clipped != clipped {
				t.Errorf("clipped is %v: %s", run.Clipped, run)
			}
		})
	}
}

// A system that cuts every request to 64 KiB must never be credited with more.
func TestSearch_ClippedRequestsCountAsGranted(t *testing.T) {
	s := New(Config{MSS: 1460, RTT: 40 * time.Millisecond, CapacityBps: 96e6, Knee: 480e3, Time: time.Minute,
		Bytes: 1 << 40})
	for range 30 {
		trial, more := s.Next()
		if !more {
			break
		}
		o := Outcome{GoodputBps: 13e6, Window: 65535, Elapsed: time.Second, Lossless: true}
		if trial.Automatic {
			o.GoodputBps, o.Window = 3e6, 17520
		} else {
			o.Clipped = trial.Window > 65535
		}
		s.Observe(trial, o)
	}
	if a := s.Answer(); a.Verdict != Change || a.Window != 65535 || !a.Clipped {
		t.Errorf("%+v", a)
	}
	if len(s.windows) != 1 {
		t.Errorf("%d windows were distinguished where there is one", len(s.windows))
	}
}

// Where a system always grants 10 % less than the request, the search counts the granted window, and the answer names
// the request.
func TestSearch_RequestsGiveLess(t *testing.T) {
	p := path()
	s := New(Config{MSS: p.MSS, RTT: p.BaseRTT(), CapacityBps: p.CapacityBps(), Knee: p.BDP()})
	rng := rand.New(rand.NewPCG(1, 2))
	trials := 0
	for ; ; trials++ {
		trial, more := s.Next()
		if !more {
			break
		}
		goodput, effective := p.Measure(rng, 0.9*float64(trial.Window), 0, trial.Time)
		s.Observe(trial, Outcome{GoodputBps: goodput, Window: int(effective), Elapsed: trial.Time, Lossless: true})
	}
	a := s.Answer()
	if share := p.Goodput(float64(a.Window)) / p.CapacityBps(); a.Verdict != Change || share < Enough ||
		a.Asked <= a.Window {
		t.Errorf("after %d trials: %+v, %v of capacity", trials, a, share)
	}
}

func TestSameSeedSameTrials(t *testing.T) {
	run := func(seed uint64) string { return follow(path(), rand.New(rand.NewPCG(5, 5)), seed).log }
	first, again := run(1), run(1)
	if first != again {
		t.Error("the same seed tries different things")
	}
	if first == run(2) && first == run(3) && first == run(4) {
		t.Error("the order does not depend on the seed")
	}
}

func TestBudgetsAreHonoured(t *testing.T) {
	for _, cfg := range []Config{{Time: 3 * time.Second}, {Bytes: 20e6}, {Time: time.Millisecond}} {
		cfg.MSS, cfg.RTT, cfg.CapacityBps, cfg.Knee = 1460, 40*time.Millisecond, 96e6, 480e3
		s := New(cfg)
		var spent time.Duration
		var bytes int64
		for {
			trial, more := s.Next()
			if !more {
				break
			}
			o := Outcome{GoodputBps: 90e6, Elapsed: trial.Time, Bytes: int64(90e6 / 8 * trial.Time.Seconds())}
			spent, bytes = spent+o.Elapsed, bytes+o.Bytes
			s.Observe(trial, o)
		}
		if cfg.Time > 0 && spent > cfg.Time || cfg.Bytes > 0 && bytes > cfg.Bytes {
			t.Errorf("spent %v and %d bytes of %v and %d", spent, bytes, cfg.Time, cfg.Bytes)
		}
		if a := s.Answer(); spent == 0 && a.Verdict != Inconclusive {
			t.Errorf("an answer without a trial: %+v", a)
		}
	}
}

// A failed measurement ends the search instead of an endless loop.
func TestNothingArrives(t *testing.T) {
	s := New(Config{MSS: 1460, RTT: time.Millisecond, CapacityBps: 1e6, Knee: 1})
	for trials := 0; ; trials++ {
		trial, more := s.Next()
		if !more {
			break
		}
		if trials > mostTrials {
			t.Fatal("no end")
		}
		s.Observe(trial, Outcome{})
	}
	if a := s.Answer(); a.Verdict == Change {
		t.Errorf("%+v", a)
	}
}
