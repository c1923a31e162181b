package tune

import (
	"context"
	"errors"
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

func TestTune_Windows(t *testing.T) {
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
		{"a shallow queue", func(p *simpath.Path) { p.AutoWindow, p.Queue, p.Harm = 6*bdp, 0.1*bdp, 0.7 }, false,
			search.Change, 0.98, 1.1, 1 / 0.7},
		{"requests are clipped", func(p *simpath.Path) { p.Ceiling = 131072 }, false, search.Change, 131072 / bdp * 0.99,
			131072 / bdp * 1.01, bdp / 65535},
	} {
		for _, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
			t.Run(c.name+" "+string(direction), func(t *testing.T) {
				path := narrow()
				c.change(path)
				peer := simpeer.New(path, 1)
				peer.NoClamp = c.noClamp
				d := run(t, peer, func(cfg *Config) { cfg.Directions = []transfer.Direction{direction} })
				if d.Verdict != c.verdict {
					t.Fatalf("%s: %s", d.Verdict, d.Reason.Code)
				}
				if (d.Chosen != nil) != (c.verdict == search.Change) {
					t.Fatalf("chosen %+v", d.Chosen)
				}
				if d.Chosen == nil {
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

// A small window that loses packets is not what the path carries.
func TestTune_CapacityOfLossyWindow(t *testing.T) {
	for _, loss := range []float64{0.0003, 0.001, 0.0015, 0.003} {
		for _, window := range []float64{8192, 16384, 65535} {
			path := &simpath.Path{RateBps: 50e6, RTT: 60 * time.Millisecond, MSS: 1460, Queue: 375e3, Harm: 1, Loss: loss,
				AutoWindow: window, Noise: simpath.Noise{Dev: 0.02}}
			peer := simpeer.New(path, 1)
			peer.Fail = func(s transfer.Spec) error {
				if s.Near.Congestion == lossBlind || s.Far.Congestion == lossBlind {
					return errors.New("no such module")
				}
				return nil
			}
			d := run(t, peer, nil)
			if of := d.Path.CapacityBps / path.CapacityBps(); of < 0.95 || of > 1.05 {
				t.Errorf("loss %g, a window of %g today: carries %.3g of %.3g bit/s, at least: %v", loss, window,
					d.Path.CapacityBps, path.CapacityBps(), d.Path.AtLeast)
			}
		}
	}
}

// TestTune_SenderOnly checks that, where the far end's sockets cannot be set, the sender's buffer limits the window
// that a shallow queue needs.
func TestTune_SenderOnly(t *testing.T) {
	path := narrow()
	bdp := path.BDP()
	path.AutoWindow, path.Queue, path.Harm = 6*bdp, 0.1*bdp, 0.7
	peer := simpeer.New(path, 1)
	peer.NoClamp, peer.NoFar = true, true
	d := run(t, peer, nil)
	if d.Verdict != search.Change || d.Chosen == nil || d.Chosen.ReceiveBuffer != 0 || d.Chosen.Clamp != 0 ||
		d.Chosen.SendBuffer == 0 {
		t.Fatalf("%s: %s: %+v", d.Verdict, d.Reason.Code, d.Chosen)
	}
	if window := float64(d.Chosen.Window) / bdp; window < 0.95 || window > 1.12 {
		t.Errorf("window is %.3f BDP", window)
	}
}

// Where loss limits, another congestion control is a result like a window: proven, with
// what to set.
func TestTune_CongestionControl(t *testing.T) {
	for _, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
		path := narrow()
		path.AutoWindow, path.Loss = 4*path.BDP(), 0.003
		today := path.Automatic()
		d := run(t, simpeer.New(path, 1), func(cfg *Config) {
			cfg.Directions, cfg.FileSize = []transfer.Direction{direction}, 1e9
		})
		if d.Verdict != search.Change || d.Chosen == nil || d.Chosen.Congestion != "bbr" || d.After == nil || d.File == nil {
			t.Fatalf("%s: %s: %+v, %s", direction, d.Verdict, d.Chosen, d.Reason.Code)
		}
		truth := path.CapacityBps() / today
		if d.Gain.Low > truth*1.1 || d.Gain.High < truth*0.9 || d.Gain.Low <= 1 {
			t.Errorf("gain %+v, the truth is about %.2f", d.Gain, truth)
		}
		if d.File.After >= d.File.Before {
			t.Errorf("file %+v", d.File)
		}
		if high := d.Before.Interval.High; high > 1.02*path.CapacityBps() {
			t.Errorf("before may be %.3g bit/s, the path carries %.3g", high, path.CapacityBps())
		}
	}
}

// Where the window is what limits and loss is next, the answer is both together, each shown.
func TestTune_CombinesRemedies(t *testing.T) {
	path := narrow()
	path.Loss = 0.0001
	window := path.Goodput(4 * path.BDP())
	d := run(t, simpeer.New(path, 1), nil)
	if c := d.Chosen; d.Verdict != search.Change || c == nil || c.Congestion != "bbr" || float64(c.Window) < path.BDP() {
		t.Fatalf("%s: %+v, %s", d.Verdict, d.Chosen, d.Reason.Code)
	}
	if d.After.Interval.Mid < 1.5*window || d.Gain.Low < 1.5*window/path.Automatic() {
		t.Errorf("after %+v, gain %+v; a window alone gives %.3g", d.After.Interval, d.Gain, window)
	}
}

// For latency a setup is chosen that leaves the queue empty and the rate nearly whole; a path
// without a queue needs none.
func TestTune_Latency(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*simpath.Path)
		verdict search.Verdict
	}{
		{"a long queue", func(p *simpath.Path) { p.AutoWindow = 2.5 * p.BDP() }, search.Change},
		{"no queue", func(p *simpath.Path) { p.AutoWindow = 1.02 * p.BDP() }, search.NoChange},
	} {
		path := narrow()
		c.change(path)
		d := run(t, simpeer.New(path, 1), func(cfg *Config) { cfg.Goal = Latency })
		if d.Verdict != c.verdict || (d.Chosen != nil) != (c.verdict == search.Change) {
			t.Fatalf("%s: %s: %s, chosen %+v", c.name, d.Verdict, d.Reason.Code, d.Chosen)
		}
		if d.Chosen == nil {
			continue
		}
		if d.Delay == nil || d.Delay.After > d.Delay.Before/2 || d.Gain.Mid < keeps {
			t.Errorf("%s: delay %+v, goodput %+v with %s", c.name, d.Delay, d.Gain, d.Chosen)
		}
	}
}

// TestTune_NoFalseGain checks that a path without a gain shows none, at any noise.
func TestTune_NoFalseGain(t *testing.T) {
	seeds := 125
	if testing.Short() {
		seeds = 25
	}
	wrong, likely, runs := 0, 0, 0
	for _, noise := range []simpath.Noise{{Dev: 0.004}, {Dev: 0.1}, {Dev: 0.03, Stalls: 0.05}, {Dev: 0.02, Drift: 0.2,
		Period: 20 * time.Second}} {
		for _, loss := range []float64{0, 0.003} {
			for seed := range uint64(seeds) {
				path := narrow()
				path.AutoWindow, path.Noise, path.Loss = 4*path.BDP(), noise, loss
				peer := simpeer.New(path, seed)
				peer.Policed = true
				if d := run(t, peer, func(cfg *Config) { cfg.Seed = seed }); d.Chosen != nil {
					t.Logf("%+v, loss %v, seed %d: %s %s × %.2f (%.2f to %.2f)", noise, loss, seed, d.Decision.Strength, d.Chosen,
						d.Gain.Mid, d.Gain.Low, d.Gain.High)
					likely++
					if d.Decision.Strength == search.Shown {
						wrong++
					}
				}
				runs++
			}
		}
	}
	if wrong > runs/100 || likely > runs/20 {
		t.Errorf("a gain was shown in %d and at least likely in %d of %d runs", wrong, likely, runs)
	}
}

func TestTune_ClippedPathsUseStreams(t *testing.T) {
	path := narrow()
	path.Ceiling = 200e3
	d := run(t, simpeer.New(path, 1), nil)
	if !d.Clipped || !d.Path.AtLeast || d.Path.CapacityBps < 0.95*path.CapacityBps() {
		t.Errorf("clipped %v, path %+v", d.Clipped, d.Path)
	}
	if d.Reason.Code != BetterBelowCeilings {
		t.Errorf("reason %q", d.Reason.Code)
	}
}

func TestTune_TwoRunsAgree(t *testing.T) {
	one, two := run(t, simpeer.New(narrow(), 1), nil), run(t, simpeer.New(narrow(), 2), func(c *Config) { c.Seed = 2 })
	if one.Gain.Low > two.Gain.High || two.Gain.Low > one.Gain.High {
		t.Errorf("gains %+v and %+v", one.Gain, two.Gain)
	}
}

func TestTune_Budgets(t *testing.T) {
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
	if d.File == nil || d.File.Before.Seconds() < 550 || d.File.After.Seconds() > 90 {
		t.Errorf("%+v", d.File)
	}
}

// TestRun_Interrupted checks that everything measured until an error or an interruption is kept and marked.
func TestRun_Interrupted(t *testing.T) {
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
	if result, err = Run(t.Context(), Config{Peer: peer, Directions: []transfer.Direction{transfer.Up}}); !errors.Is(err,
		broken) || len(result.Directions) != 0 {
		t.Errorf("%v, %+v", err, result)
	}
}

func TestRun_Progress(t *testing.T) {
	var said []Progress
	run(t, simpeer.New(narrow(), 1), func(c *Config) { c.Progress = func(p Progress) { said = append(said, p) } })
	last := 0.0
	windows := false
	for _, p := range said {
		if p.Done < last-0.5 || p.Done > 1 || p.Purpose == "" {
			t.Errorf("%+v", p)
		}
		last = p.Done
		windows = windows || p.Setup.Window > 0
	}
	if !windows || len(said) < 8 {
		t.Errorf("said %+v", said)
	}
}
