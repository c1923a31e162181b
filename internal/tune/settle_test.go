package tune

import (
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestAgree_LowersConfidence checks that a verdict which some runs contradict is less sure than each of them, and
// that the evidence gives their number.
func TestAgree_LowersConfidence(t *testing.T) {
	const full, unsure = verdict.Bottleneck, verdict.Unknown
	for _, c := range []struct {
		name       string
		runs       []verdict.Name
		limiter    verdict.Name
		confidence verdict.Confidence
		agree      float64 // 0: nothing is said of it
	}{
		{"all say so", []verdict.Name{full, full, full}, full, verdict.High, 0},
		{"one of six is an accident", []verdict.Name{full, full, unsure, full, full, full}, full, verdict.High, 5},
		{"a third do not know", []verdict.Name{full, unsure, full}, full, verdict.Medium, 2},
		{"half say something else", []verdict.Name{full, full, unsure, verdict.SlowStart}, full, verdict.Low, 2},
		{"windows were settled", []verdict.Name{verdict.ReceiverWindow, full, verdict.ReceiverWindow}, full,
			verdict.High, 0},
	} {
		l := looped(Path{})
		wide := Setup{Window: 1 << 20}
		l.seen.trials = []Trial{{Setup: wide, Effective: 1 << 20, Goodput: 10e6, Limiter: full,
			verdict: verdict.Verdict{Limiter: full, Confidence: verdict.High}}}
		for _, name := range c.runs {
			l.seen.trials = append(l.seen.trials, Trial{Automatic: true, Effective: 1 << 16, Goodput: 10e6, Limiter: name,
				result: &transfer.Result{}, verdict: verdict.Verdict{Limiter: name, Confidence: verdict.High}})
		}
		m := l.seen.measured(l.seen.baselineRuns())
		said := 0.0
		for _, e := range m.Verdict.Evidence {
			if e.Code == verdict.RunsDisagree {
				said = e.Values["agree"]
			}
		}
		if v := m.Verdict; v.Limiter != c.limiter || v.Confidence != c.confidence || said != c.agree {
			t.Errorf("%s: %s, %s, %v agree", c.name, v.Limiter, v.Confidence, said)
		}
	}
}

// Of the runs with the commonest limiter those with its commonest subtype are the typical ones.
func TestCommonest_Subtype(t *testing.T) {
	run := func(subtype string) *Trial {
		return &Trial{Limiter: verdict.Congestion, verdict: verdict.Verdict{Limiter: verdict.Congestion, Subtype: subtype}}
	}
	common := commonest([]*Trial{run(""), run(verdict.Policer), run(verdict.Policer), {Limiter: verdict.Unknown}})
	if len(common) != 2 || common[0].verdict.Subtype != verdict.Policer {
		t.Errorf("%+v", common)
	}
}

// TestSettle_WindowOfTheBDP checks that a window of just the BDP is compared with a larger one, too.
func TestSettle_WindowOfTheBDP(t *testing.T) {
	for larger, want := range map[float64]verdict.Name{10.2e6: verdict.Bottleneck, 15e6: verdict.Unknown} {
		l := looped(Path{})
		just, wide := Setup{Window: 1 << 16}, Setup{Window: 1 << 20}
		open := verdict.Verdict{Limiter: verdict.Unknown, Confidence: verdict.Low, Shares: verdict.Shares{verdict.Unknown: 1},
			Candidates: []verdict.Name{verdict.ReceiverWindow, verdict.Bottleneck}}
		l.seen.trials = []Trial{{Setup: wide, Effective: 1 << 20, Goodput: larger, Limiter: verdict.Bottleneck,
			verdict: verdict.Verdict{Limiter: verdict.Bottleneck, Confidence: verdict.High}},
			{Setup: just, Effective: 1 << 16, Goodput: 10e6, Limiter: verdict.Unknown,
				result: &transfer.Result{}, verdict: open}}
		m := l.seen.measured(l.seen.runsOf(just))
		if v := m.Verdict; v.Limiter != want || v.Shares[want] != 1 {
			t.Errorf("%v with the larger one: %s, %v", larger, v.Limiter, v.Shares)
		}
	}
}

// TestCounterfactual_Confidence checks the confidence of a verdict that a larger window corrected, whatever the
// verdicts of single runs.
func TestCounterfactual_Confidence(t *testing.T) {
	for _, c := range []struct {
		name     string
		larger   int
		bps      float64
		its      verdict.Confidence
		limiter  verdict.Name
		expected verdict.Confidence
	}{
		{"far larger, nothing more", 1 << 19, 9.9e6, verdict.Low, verdict.Bottleneck, verdict.Medium},
		{"far larger, nothing more, sure of itself", 1 << 19, 10e6, verdict.High, verdict.Bottleneck, verdict.High},
		{"somewhat larger, nothing more", 83000, 10e6, verdict.Low, verdict.Bottleneck, verdict.Low},
		{"far larger, a little more", 1 << 19, 10.6e6, verdict.High, verdict.Bottleneck, verdict.Medium},
		{"something else limits, perhaps", 1 << 19, 10e6, verdict.Low, verdict.Congestion, verdict.Low},
	} {
		just, wide := Setup{Window: 1 << 16}, Setup{Window: c.larger}
		open := verdict.Verdict{Limiter: verdict.Unknown, Confidence: verdict.Low,
			Candidates: []verdict.Name{verdict.ReceiverWindow, verdict.Bottleneck}}
		l := looped(Path{})
		l.seen.trials = []Trial{{Setup: wide, Effective: c.larger, Goodput: c.bps, Limiter: c.limiter,
			verdict: verdict.Verdict{Limiter: c.limiter, Confidence: c.its}},
			{Setup: just, Effective: 1 << 16, Goodput: 10e6, Limiter: verdict.Unknown, result: &transfer.Result{},
				verdict: open}}
		m := l.seen.measured(l.seen.runsOf(just))
		if v := m.Verdict; v.Limiter != c.limiter || v.Confidence != c.expected {
			t.Errorf("%s: %s, %s", c.name, v.Limiter, v.Confidence)
		}
	}
}

// TestSettle_SameTrialsSameVerdict checks that a verdict depends on the trials only, also where as many of the roomier
// ones name one limiter as another.
func TestSettle_SameTrialsSameVerdict(t *testing.T) {
	for _, names := range [][]verdict.Name{
		{verdict.Congestion, verdict.Application},
		{verdict.Application, verdict.Congestion, verdict.Unknown},
		{verdict.Congestion, verdict.Bottleneck},
	} {
		want := names[0]
		if slices.Contains(names, verdict.Bottleneck) {
			want = verdict.Bottleneck
		}
		for range 200 {
			l := looped(Path{})
			for i, name := range names {
				l.seen.trials = append(l.seen.trials, Trial{Setup: Setup{Window: (i + 2) << 20}, Effective: (i + 2) << 20,
					Goodput: 10e6, Limiter: name, verdict: verdict.Verdict{Limiter: name, Confidence: verdict.Medium}})
			}
			l.seen.trials = append(l.seen.trials, Trial{Automatic: true, Effective: 1 << 20, Goodput: 10e6,
				Limiter: verdict.ReceiverWindow, result: &transfer.Result{},
				verdict: verdict.Verdict{Limiter: verdict.ReceiverWindow, Confidence: verdict.Medium}})
			m := l.seen.measured(l.seen.baselineRuns())
			if m.Verdict.Limiter != want || m.Verdict.Evidence[0].Values["larger_window_bytes"] != 2<<20 {
				t.Fatalf("%v: %s, %v", names, m.Verdict.Limiter, m.Verdict.Evidence[0].Values)
			}
		}
	}
}
