package tune

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// narrow is 100 Mbit/s and 40 ms between hosts that stop at 64 KiB by themselves.
func narrow() *simpath.Path {
	return &simpath.Path{RateBps: 100e6, RTT: 40 * time.Millisecond, MSS: 1448, Queue: 1e6, Harm: 1, AutoWindow: 65535,
		Noise: simpath.Noise{Dev: 0.004}}
}

func run(t *testing.T, peer *simpeer.Peer, change func(*Config)) Direction {
	t.Helper()
	cfg := Config{Peer: peer, Directions: []transfer.Direction{transfer.Up}, Seed: 1}
	if change != nil {
		change(&cfg)
	}
	result, err := Run(t.Context(), cfg)
	if err != nil || len(result.Directions) == 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	return result.Directions[len(result.Directions)-1]
}

func TestTheLoop(t *testing.T) {
	bdp := narrow().BDP()
	for _, c := range []struct {
		name      string
		change    func(*simpath.Path)
		noClamp   bool
		verdict   search.Verdict
		low, high float64 // window in BDP
		factor    float64
	}{
		{"windows limit", func(*simpath.Path) {}, false, search.Change, 0.98, 1.15, bdp / 65535},
		{"windows limit and cannot be clamped", func(*simpath.Path) {}, true, search.Change, 0.98, 1.15, bdp / 65535},
		{"the systems do well", func(p *simpath.Path) { p.AutoWindow = 4 * bdp }, false, search.NoChange, 0, 0, 0},
		{"a shallow queue", func(p *simpath.Path) { p.AutoWindow, p.Queue, p.Harm = 6*bdp, 0.1*bdp, 0.7 }, false, search.Change, 0.98, 1.1, 1 / 0.7},
		{"requests are clipped", func(p *simpath.Path) { p.Ceiling = 131072 }, false, search.Change, 131072 / bdp * 0.99, 131072 / bdp * 1.01, 2},
		{"loss limits", func(p *simpath.Path) { p.AutoWindow, p.Loss = 4*bdp, 0.01 }, false, search.Inconclusive, 0, 0, 0},
	} {
		for _, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
			t.Run(c.name+" "+string(direction), func(t *testing.T) {
				path := narrow()
				c.change(path)
				peer := simpeer.New(path, 1)
				peer.NoClamp = c.noClamp
				d := run(t, peer, func(cfg *Config) { cfg.Directions = []transfer.Direction{direction} })
				if d.Verdict != c.verdict {
					t.Fatalf("%s: %s\n%+v", d.Verdict, d.Reason, d.Trials)
				}
				if (d.Chosen != nil) != (c.verdict == search.Change) {
					t.Fatalf("chosen %+v", d.Chosen)
				}
				if d.Chosen == nil {
					if len(d.Remedies) == 0 {
						t.Error("nothing else was tried")
					}
					return
				}
				if window := float64(d.Chosen.Window) / bdp; window < c.low || window > c.high {
					t.Errorf("window is %.3f BDP, want %.3f to %.3f", window, c.low, c.high)
				}
				if d.Gain == nil || d.Gain.Low > c.factor || d.Gain.High < c.factor*0.97 {
					t.Errorf("gain %+v, the truth is %.2f", d.Gain, c.factor)
				}
			})
		}
	}
}

func TestClippedPathsAreMeasuredByStreams(t *testing.T) {
	path := narrow()
	path.Ceiling = 200e3
	d := run(t, simpeer.New(path, 1), nil)
	if !d.Clipped || !d.Path.AtLeast || d.Path.CapacityBps < 0.95*path.CapacityBps() {
		t.Errorf("clipped %v, path %+v", d.Clipped, d.Path)
	}
	if !strings.Contains(d.Reason, "ceilings") {
		t.Errorf("reason %q", d.Reason)
	}
}

func TestTwoRunsAgree(t *testing.T) {
	one, two := run(t, simpeer.New(narrow(), 1), nil), run(t, simpeer.New(narrow(), 2), func(c *Config) { c.Seed = 2 })
	if !one.Gain.Overlaps(*two.Gain) {
		t.Errorf("gains %+v and %+v", one.Gain, two.Gain)
	}
}

func TestBudgets(t *testing.T) {
	for _, c := range []struct {
		budget time.Duration
		bytes  int64
	}{{10 * time.Second, 0}, {0, 40e6}, {time.Second, 1e6}} {
		peer := simpeer.New(narrow(), 1)
		var spent time.Duration
		var bytes int64
		d := run(t, peer, func(cfg *Config) { cfg.Budget, cfg.MaxBytes = c.budget, c.bytes })
		for _, trial := range d.Trials {
			spent, bytes = spent+trial.elapsed, bytes+trial.bytes
		}
		// The first transfers are needed to know anything; they alone may pass a tiny budget.
		if c.budget > 5*time.Second && spent > c.budget || c.bytes > 10e6 && bytes > c.bytes {
			t.Errorf("budget %v and %d bytes: spent %v and %d", c.budget, c.bytes, spent, bytes)
		}
		if d.Before.Interval.Mid <= 0 {
			t.Errorf("nothing measured: %+v", d.Before)
		}
	}
}

func TestFileTime(t *testing.T) {
	d := run(t, simpeer.New(narrow(), 1), func(c *Config) { c.FileSize = 1e9 })
	if d.File == nil || d.File.Before < 550*time.Second || d.File.After > 90*time.Second {
		t.Errorf("%+v", d.File)
	}
}

// What was measured until an error or an interruption is kept and marked.
func TestCutShort(t *testing.T) {
	broken := errors.New("connection reset")
	peer := simpeer.New(narrow(), 1)
	peer.Fail = func(transfer.Spec) error {
		if len(peer.Ran) > 6 {
			return broken
		}
		return nil
	}
	result, err := Run(t.Context(), Config{Peer: peer, Directions: []transfer.Direction{transfer.Up, transfer.Down}})
	if !errors.Is(err, broken) || len(result.Directions) != 1 {
		t.Fatalf("%v, %+v", err, result)
	}
	if d := result.Directions[0]; !d.Interrupted || len(d.Trials) < 4 || len(d.Before.Goodputs) == 0 {
		t.Errorf("%+v", d)
	}

	ctx, cancel := context.WithCancel(t.Context())
	peer = simpeer.New(narrow(), 1)
	peer.Fail = func(transfer.Spec) error {
		if len(peer.Ran) == 5 {
			cancel()
		}
		return nil
	}
	result, err = Run(ctx, Config{Peer: peer, Directions: []transfer.Direction{transfer.Up}})
	if !errors.Is(err, context.Canceled) || len(result.Directions) != 1 || !result.Directions[0].Interrupted {
		t.Errorf("%v, %+v", err, result)
	}

	peer = simpeer.New(narrow(), 1)
	peer.Fail = func(transfer.Spec) error { return broken }
	if result, err = Run(t.Context(), Config{Peer: peer, Directions: []transfer.Direction{transfer.Up}}); !errors.Is(err, broken) || len(result.Directions) != 0 {
		t.Errorf("%v, %+v", err, result)
	}
}

func TestProgressSaysWhatIsTried(t *testing.T) {
	var said []Progress
	run(t, simpeer.New(narrow(), 1), func(c *Config) { c.Progress = func(p Progress) { said = append(said, p) } })
	last := 0.0
	windows := false
	for _, p := range said {
		if p.Done < last-0.5 || p.Done > 1 || p.Doing == "" {
			t.Errorf("%+v", p)
		}
		last = p.Done
		windows = windows || strings.Contains(p.Doing, "a window of ")
	}
	if !windows || len(said) < 8 {
		t.Errorf("said %+v", said)
	}
}
