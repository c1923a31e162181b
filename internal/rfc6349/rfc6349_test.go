package rfc6349

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

var bothDirections = []transfer.Direction{transfer.Up, transfer.Down}

func committed(bps float64) map[transfer.Direction]float64 {
	return map[transfer.Direction]float64{transfer.Up: bps, transfer.Down: bps}
}

func test(t *testing.T, path *simpath.Path, change func(*Config, *far)) *Result {
	t.Helper()
	peer := &far{Peer: simpeer.New(path, 1)}
	cfg := Config{Peer: peer, Directions: bothDirections, Echo: echo(path)}
	if change != nil {
		change(&cfg, peer)
	}
	r := must.Get(Run(t.Context(), cfg))(t)
	return r
}

func near(got, want, share float64) bool { return math.Abs(got-want) <= share*math.Abs(want) }

func TestRun_CompleteProcedure(t *testing.T) {
	path := line()
	r := test(t, path, func(c *Config, _ *far) { c.Committed = committed(100e6) })
	if time.Duration(r.Path.RTT) != path.RTT || r.Path.MTU != 1500 || r.Path.MSS != 1448 || r.Path.Headers != 52 ||
		!r.Path.Timestamps {
		t.Errorf("path %+v", r.Path)
	}
	if r.Verdict != Pass || r.RunTime != DefaultTime {
		t.Errorf("verdict %s after runs of %v", r.Verdict, r.RunTime)
	}
	for _, d := range r.Directions {
		if !near(d.Bottleneck.Bps, 100e6, 0.01) || d.Bottleneck.AtLeast || d.Bottleneck.Method.Code != ByUDP {
			t.Errorf("%s: bottleneck %+v", d.Direction, d.Bottleneck)
		}
		if !near(d.BDPBytes, 500e3, 0.01) || !near(d.MaxTCPBps, 100e6*1448/1500, 1e-6) {
			t.Errorf("%s: BDP %v, largest TCP %v", d.Direction, d.BDPBytes, d.MaxTCPBps)
		}
		var shares []float64
		for _, test := range d.Tests {
			if test.Kind != Window {
				continue
			}
			shares = append(shares, math.Round(20*test.Share)/20)
			if r := test.Typical(); r == nil || !near(r.SteadyBps, test.AchievableBps, 0.04) {
				t.Errorf("%s: window %d: %+v, achievable %v", d.Direction, test.Window, r, test.AchievableBps)
			}
		}
		if want := []float64{0.25, 0.5, 0.75, 1, 1.25, 1.5}; !slices.Equal(shares, want) {
			t.Errorf("windows of %v of the BDP", shares)
		}
		full, several, both := d.Find(Full), d.Find(Several), d.Find(Both)
		if len(full.Runs) != 3 || len(several.Runs) != 3 || len(both.Runs) != 3 || several.Connections != 8 {
			t.Errorf("%s: %d, %d and %d runs, %d connections", d.Direction, len(full.Runs), len(several.Runs), len(both.Runs),
				several.Connections)
		}
		run := full.Typical()
		if !near(run.SteadyRatio, 1, 0.02) || run.TimeRatio < 0.98 {
			t.Errorf("%s: ratio %v, in equilibrium %v", d.Direction, run.TimeRatio, run.SteadyRatio)
		}
		// The simulated path's round trip is what a window's bytes take at its rate.
		if delay := run.BufferDelay; delay == nil || !near(1+*delay, max(float64(full.Window)/(100e6*1448/1500/8)/0.04,
			1), 0.02) {
			t.Errorf("%s: buffer delay %v of a window of %d", d.Direction, delay, full.Window)
		}
	}
}

func TestSignOff(t *testing.T) {
	for _, c := range []struct {
		name   string
		path   func(*simpath.Path)
		change func(*Config, *far)
		want   Verdict
		reason Code // of some criterion
	}{
		{"the line is as wide as committed", nil, nil, Pass, ""},
		{"the line is narrower", func(p *simpath.Path) { p.RateBps = 80e6 }, nil, Fail, LineTooNarrow},
		{"the committed rate counts framing", func(p *simpath.Path) { p.RateBps = 100e6 * 1500 / 1538 },
			func(c *Config, _ *far) { c.Overhead, c.Tolerance = 38, 0.02 }, Pass, ""},
		{"nothing was committed to", nil, func(c *Config, _ *far) { c.Committed = nil }, NotJudged, ""},
		{"loss", func(p *simpath.Path) { p.Loss = 0.01 }, nil, Fail, ""},
		{"hosts that cannot send so fast over UDP", nil, func(_ *Config, f *far) { f.hostBps = 40e6 }, Inconclusive,
			UDPTreatedWorse},
		{"a line that carries less UDP", nil, func(_ *Config, f *far) { f.udpBps = 60e6 }, Inconclusive, UDPTreatedWorse},
		{"hosts whose windows stop early", func(p *simpath.Path) { p.AutoWindow, p.Ceiling = 65535, 65535 }, nil,
			Inconclusive, LimitedByEnd},
		{"the directions share one medium", nil, func(_ *Config, f *far) { f.shared = true }, Fail, SharedMedium},
		{"a queue longer than allowed", nil, func(c *Config, _ *far) { c.MostBufferDelay = 0.01 }, Fail, EveryRun},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := line()
			if c.path != nil {
				c.path(path)
			}
			r := test(t, path, func(cfg *Config, f *far) {
				cfg.Committed = committed(100e6)
				if c.change != nil {
					c.change(cfg, f)
				}
			})
			if r.Verdict != c.want {
				t.Errorf("%s, want %s: %+v", r.Verdict, c.want, r.Directions[0].Criteria)
			}
			var reasons []Code
			for _, d := range r.Directions {
				checkBottleneck(t, &d)
				for _, one := range d.Criteria {
					reasons = append(reasons, one.Reason.Code)
				}
			}
			if c.reason != "" && !slices.Contains(reasons, c.reason) {
				t.Errorf("no criterion has the reason %q: %q", c.reason, reasons)
			}
		})
	}
}

// checkBottleneck checks that no TCP test carried more than the bottleneck allows, unless that is a lower bound.
func checkBottleneck(t *testing.T, d *Direction) {
	t.Helper()
	for i := range d.Tests {
		test := &d.Tests[i]
		run := test.Typical()
		if run == nil || test.Kind == Both {
			continue
		}
		if most := 1.05 * min(test.AchievableBps, d.Bottleneck.Bps); run.SteadyBps > most && !d.Bottleneck.AtLeast ||
			run.SteadyBps > 1.05*test.AchievableBps {
			t.Errorf("%s: %.3g bit/s of %.3g, the bottleneck is %.3g", test.Kind, run.SteadyBps, test.AchievableBps,
				d.Bottleneck.Bps)
		}
	}
}

// Both directions at once are compared with one alone as far as the runs alone show its goodput.
func TestJudgeBoth_ScatteredRunsAlone(t *testing.T) {
	interval := func(low, mid, high float64) stats.Interval {
		return stats.Interval{Low: low * 1e6, Mid: mid * 1e6, High: high * 1e6}
	}
	for _, tt := range []struct {
		alone, both stats.Interval
		want        Code
	}{
		{interval(7.9, 9.57, 11.6), interval(8, 8.4, 8.8), AcksDelayed},
		{interval(7.9, 9.57, 11.6), interval(5, 6, 7), SharingUndecided},
		{interval(9.4, 9.57, 9.7), interval(4.6, 4.8, 5), SharedMedium},
		{interval(5, 6, 7), interval(5, 6, 7), AloneTooSlow},
	} {
		judge := tester{cfg: Config{Tolerance: 0.05}, out: &Result{}}
		for range 2 {
			judge.out.Directions = append(judge.out.Directions, Direction{MaxTCPBps: 8.69e6, Tests: []Test{
				{Kind: Full, Runs: make([]Outcome, minRunsToFail), Goodput: tt.alone},
				{Kind: Both, Runs: make([]Outcome, minRunsToFail), Goodput: tt.both}}})
		}
		if _, reason := judge.judgeBoth(); reason.Code != tt.want {
			t.Errorf("alone %v, both %v: %s, want %s", tt.alone, tt.both, reason.Code, tt.want)
		}
	}
}

// A queue longer than a trial's excess loses none of it.
func TestFrames_DeepQueue(t *testing.T) {
	for _, committedBps := range []float64{0, 60e6, 90e6, 120e6} {
		r := test(t, line(), func(c *Config, f *far) {
			c.Committed, c.Frames.Sizes, f.queue = committed(committedBps), FrameSizes(), 4e6
		})
		for _, f := range r.Directions[0].Frames {
			due := 100e6 / 8 / float64(f.FrameBytes-EthernetBytes)
			if f.Skipped.Code == "" && (f.FramesPerSec > 1.003*due || f.FramesPerSec < 0.97*due) {
				t.Errorf("%.0f bit/s committed, %d bytes: %.1f frames/s of %.1f", committedBps, f.FrameBytes,
					f.FramesPerSec, due)
			}
			if committedBps == 120e6 && f.Verdict == Pass {
				t.Errorf("%d bytes: a line of 100 Mbit/s passes 120", f.FrameBytes)
			}
		}
	}
}

func TestFrames(t *testing.T) {
	sizes := FrameSizes()
	r := test(t, line(), func(c *Config, _ *far) { c.Committed, c.Frames.Sizes = committed(100e6), append(sizes, 9018) })
	if r.Verdict != Inconclusive { // one size does not fit
		t.Errorf("verdict %s", r.Verdict)
	}
	for i, f := range r.Directions[0].Frames {
		if f.FrameBytes == 9018 {
			if f.Skipped.Code != FrameExceedsMTU {
				t.Errorf("a jumbo frame: %+v", f)
			}
			continue
		}
		if want := 100e6 / 8 / float64(sizes[i]-18); f.Verdict != Pass || !near(f.FramesPerSec, want, 0.03) {
			t.Errorf("%d bytes: %.0f frames/s, want %.0f: %s %s", f.FrameBytes, f.FramesPerSec, want, f.Verdict, f.Reason.Code)
		}
	}
	// A host's own packet rate is not sold as the line's.
	r = test(t, line(), func(c *Config, f *far) {
		c.Committed, c.Frames.Sizes, f.hostFPS = committed(100e6), sizes, 30e3
	})
	for _, f := range r.Directions[0].Frames {
		want := Pass
		if f.FrameBytes < 512 {
			want = Inconclusive
		}
		if f.Verdict != want {
			t.Errorf("%d bytes: %s, %s; want %s", f.FrameBytes, f.Verdict, f.Reason.Code, want)
		}
	}
}

func TestWithoutUDP(t *testing.T) {
	path := line()
	r, err := Run(t.Context(), Config{Peer: simpeer.New(path, 1), Directions: bothDirections, Committed: committed(100e6)})
	if err != nil {
		t.Fatal(err)
	}
	d := r.Directions[0]
	if !d.Bottleneck.AtLeast || d.Bottleneck.Method.Code != ByTCP || !near(d.Bottleneck.Bps, 100e6, 0.05) {
		t.Errorf("%+v", d.Bottleneck)
	}
	if both := d.Find(Both); both == nil || both.Skipped.Code == "" || r.Verdict != Inconclusive {
		t.Errorf("both directions at once: %+v, verdict %s", both, r.Verdict)
	}
}

func TestBudgets(t *testing.T) {
	for _, budget := range []time.Duration{10 * time.Second, 30 * time.Second, 2 * time.Minute} {
		path := line()
		r := test(t, path, func(c *Config, _ *far) { c.Budget, c.Committed = budget, committed(100e6) })
		var spent time.Duration
		for _, d := range r.Directions {
			for _, test := range d.Tests {
				for _, run := range test.Runs {
					spent += time.Duration(run.Duration)
				}
			}
		}
		if spent > budget || r.Verdict == Fail {
			t.Errorf("%v: runs of %v took %v: %s", budget, r.RunTime, spent, r.Verdict)
		}
	}
}

func TestCutShort(t *testing.T) {
	for _, after := range []int{0, 1, 4, 12, 25} {
		ctx, cancel := context.WithCancel(t.Context())
		peer := &far{Peer: simpeer.New(line(), 1)}
		peer.Fail = func(transfer.Spec) error {
			if len(peer.Ran) == after {
				cancel()
			}
			return context.Cause(ctx)
		}
		if after == 0 {
			cancel()
		}
		r, err := Run(ctx, Config{Peer: peer, Directions: bothDirections, Committed: committed(100e6)})
		if !errors.Is(err, context.Canceled) || !r.Interrupted || r.Verdict == Pass {
			t.Errorf("after %d: %v, %s", after, err, r.Verdict)
		}
		cancel()
	}
	broken := errors.New("connection reset")
	peer := &far{Peer: simpeer.New(line(), 1)}
	peer.Fail = func(transfer.Spec) error {
		if len(peer.Ran) > 6 {
			return broken
		}
		return nil
	}
	r, err := Run(t.Context(), Config{Peer: peer, Directions: bothDirections})
	if !errors.Is(err, broken) || len(r.Directions[0].Tests) < 3 {
		t.Errorf("%v, %+v", err, r.Directions[0].Tests)
	}
}

func TestProgress(t *testing.T) {
	var said []Progress
	test(t, line(), func(c *Config, _ *far) { c.Progress = func(p Progress) { said = append(said, p) } })
	last := 0.0
	for _, p := range said {
		if p.Doing.Code == "" || p.Done > 1 || p.Done < last-0.2 {
			t.Errorf("%+v after %v", p, last)
		}
		last = p.Done
	}
	if len(said) < 20 {
		t.Errorf("%d words in all", len(said))
	}
}

// A policer's bucket is no part of the line's rate.
func TestBurstsAreLeftOut(t *testing.T) {
	r := test(t, line(), func(c *Config, f *far) { c.Committed, f.burst = committed(120e6), 600e3 })
	for _, d := range r.Directions {
		if b := d.Bottleneck; !near(b.Bps, 100e6, 0.003) || !near(float64(b.BurstBytes), 600e3*1500/1472, 0.05) {
			t.Errorf("%s: %+v", d.Direction, b)
		}
	}
}

// Loss that has nothing to do with the rate does not make a link look full, wherever the
// search begins.
func TestStrayLossIsNoFullLink(t *testing.T) {
	for _, loss := range []float64{0.002, 0.01, 0.05} {
		path := line()
		path.Loss = loss
		r := test(t, path, nil)
		if b := r.Directions[0].Bottleneck; b.AtLeast || !near(b.Bps, 100e6*(1-loss), 0.01) {
			t.Errorf("%v: %+v", loss, b)
		}
	}
}
