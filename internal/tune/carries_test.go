package tune

import (
	"context"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// ran returns a trial of a setup with a goodput in bit/s and a verdict.
func ran(t *testing.T, s Setup, bps float64, v verdict.Verdict) Trial {
	t.Helper()
	r, err := transfer.Run(context.Background(), simpeer.New(narrow(), 1), transfer.Spec{Direction: transfer.Up,
		Time: 2e9}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Trial{Setup: s, Automatic: s == Setup{}, Remedy: s.besides(), Goodput: bps, verdict: v, Limiter: v.Limiter,
		Spec: transfer.Spec{Streams: s.Streams}, result: r}
}

func looped(path Path, trials ...Trial) *loop {
	l := newLoop(Config{}, transfer.Up)
	l.path.Path, l.seen.trials = path, trials
	return l
}

// TestCarries_RepeatedGoodputIsCapacity checks that the capacity is at least a goodput of two runs. One run may
// have begun behind a hole.
func TestCarries_RepeatedGoodputIsCapacity(t *testing.T) {
	link := verdict.Verdict{Limiter: verdict.Bottleneck}
	for _, c := range []struct {
		second, want float64
	}{{3.1e6, 3.05e6}, {2.1e6, 2.6e6}} {
		l := looped(Path{CapacityBps: 2.2e6, RTT: 4e7, MSS: 1448}, ran(t, Setup{}, 2.5e6, link),
			ran(t, Setup{Congestion: "bbr"}, 3e6, link), ran(t, Setup{Congestion: "bbr"}, c.second, link),
			ran(t, Setup{Window: 1 << 20}, 9e6, link))
		l.seen.carries(false)
		if l.path.CapacityBps/c.want < 0.97 || l.path.CapacityBps/c.want > 1.03 {
			t.Errorf("%+v: carries %.3g", c, l.path.CapacityBps)
		}
	}
}

// TestCarries_PolicerBurst checks that a policer's burst is no capacity, and that a faster setup refutes the
// policer.
func TestCarries_PolicerBurst(t *testing.T) {
	v := verdict.Verdict{Limiter: verdict.Congestion, Subtype: verdict.Policer, Confidence: verdict.Medium,
		Evidence: []verdict.Evidence{{Limiter: verdict.Congestion, Code: verdict.PolicedRate}}}
	bbr := Setup{Congestion: "bbr"}
	for _, c := range []struct {
		control, want float64
		subtype       string
	}{{10.1e6, 10.1e6, verdict.Policer}, {28e6, 30e6, ""}} {
		l := looped(Path{CapacityBps: 30e6, RTT: 4e7, MSS: 1448}, ran(t, Setup{}, 10e6, v), ran(t, Setup{}, 9.9e6, v),
			ran(t, bbr, c.control, v), ran(t, bbr, c.control, v))
		l.compared.remedies = []Remedy{{Name: "bbr", Setup: bbr, Gain: stats.Interval{Mid: c.control / 10e6}}}
		m := l.seen.measured(l.seen.baselineRuns())
		if m.Verdict.Subtype != c.subtype || (m.Verdict.Evidence[0].Code == verdict.PolicedRate) != (c.subtype != "") {
			t.Errorf("%v: %+v", c, m.Verdict)
		}
		if v.Evidence[0].Code != verdict.PolicedRate {
			t.Error("a trial's own verdict was changed")
		}
		if l.seen.carries(len(l.compared.remedies) > 0); l.path.CapacityBps != c.want {
			t.Errorf("%v: carries %.3g", c, l.path.CapacityBps)
		}
	}
}

// TestCarries_SetupsAgree checks that two setups with the same goodput show the capacity, whatever the rates of
// single round trips. Setups that differ, or that windows limit, do not.
func TestCarries_SetupsAgree(t *testing.T) {
	loss, window := verdict.Verdict{Limiter: verdict.Congestion}, verdict.Verdict{Limiter: verdict.ReceiverWindow}
	bbr, four := Setup{Congestion: "bbr"}, Setup{Streams: 4}
	for name, c := range map[string]struct {
		first, second Setup
		bps, want     float64
		v             verdict.Verdict
	}{
		"bbr and four streams":      {bbr, four, 7.6e6, 7.8e6, loss},
		"today's and bbr":           {Setup{}, bbr, 7.6e6, 7.8e6, loss},
		"one gives more":            {Setup{}, bbr, 5e6, 13.4e6, loss},
		"they differ by the window": {Setup{}, Setup{Window: 1 << 20}, 7.6e6, 13.4e6, loss},
		"windows hold both":         {Setup{}, bbr, 7.6e6, 13.4e6, window},
	} {
		l := looped(Path{CapacityBps: 13.4e6, RTT: 4e7, MSS: 1448}, ran(t, c.first, c.bps, c.v), ran(t, c.first, c.bps, c.v),
			ran(t, c.second, 7.8e6, c.v), ran(t, c.second, 7.8e6, c.v))
		if l.seen.carries(len(l.compared.remedies) > 0); l.path.CapacityBps != c.want {
			t.Errorf("%s: carries %.3g, want %.3g", name, l.path.CapacityBps, c.want)
		}
	}
}

// TestConclude_FullLink checks that two of three runs at the capacity show that no window is better: runs of a full
// link scatter downwards only.
func TestConclude_FullLink(t *testing.T) {
	link, loss := verdict.Verdict{Limiter: verdict.Bottleneck}, verdict.Verdict{Limiter: verdict.Congestion}
	for _, c := range []struct {
		name string
		runs []float64
		v    verdict.Verdict
		path Path
		want bool
	}{
		{"two of three", []float64{7.9e6, 9.62e6, 9.75e6}, link, Path{CapacityBps: 9.75e6}, true},
		{"half of them", []float64{7.9e6, 9.62e6}, link, Path{CapacityBps: 9.75e6}, false},
		{"one run", []float64{9.7e6}, link, Path{CapacityBps: 9.75e6}, false},
		{"loss", []float64{9.7e6, 9.7e6, 9.7e6}, loss, Path{CapacityBps: 9.75e6}, false},
		{"the path carried more", []float64{9.7e6, 9.7e6, 9.7e6}, link, Path{CapacityBps: 10.5e6}, false},
		{"windows in the way", []float64{9.7e6, 9.7e6, 9.7e6}, link, Path{CapacityBps: 9.75e6, AtLeast: true}, false},
	} {
		var trials []Trial
		for _, bps := range c.runs {
			trials = append(trials, ran(t, Setup{}, bps, c.v))
		}
		l := looped(c.path, trials...)
		l.windows.answer.Verdict = search.Inconclusive
		if got := l.seen.full(search.Enough); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		l.conclude(false)
		got := l.out.Verdict == search.NoChange
		if got != c.want || got != (l.out.Reason.Code == LinkFull) {
			t.Errorf("%s: %s: %s", c.name, l.out.Verdict, l.out.Reason.Code)
		}
	}
}

// TestConclude_NoRemedyHelps checks that, where no remedy helps, that is the verdict and no open question, and
// Helps is false.
func TestConclude_NoRemedyHelps(t *testing.T) {
	decided := 0
	for seed := range uint64(20) {
		path := narrow()
		path.AutoWindow, path.Loss, path.Noise = 4*path.BDP(), 0.003, simpath.Noise{Dev: 0.004}
		peer := simpeer.New(path, seed)
		peer.Policed = true
		d := run(t, peer, func(cfg *Config) { cfg.Seed = seed })
		if d.Verdict != search.NoChange {
			continue
		}
		decided++
		if d.Chosen != nil || d.Reason.Code != NothingHelps {
			t.Errorf("%s: %+v", d.Reason.Code, d.Remedies)
		}
		if (&Result{Directions: []Direction{d}}).Helps() {
			t.Error("it is said to help")
		}
	}
	if decided < 3 {
		t.Errorf("decided in %d of 20 runs", decided)
	}
}
