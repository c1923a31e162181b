package tune

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// The answer is "no" where something limits and nothing was shown to help; a full link
// leaves nothing to be tried.
func TestResult_Helps(t *testing.T) {
	congested := Measured{Verdict: verdict.Verdict{Limiter: verdict.Congestion}}
	full := Measured{Verdict: verdict.Verdict{Limiter: verdict.Bottleneck}}
	tried := []Remedy{{Name: "bbr"}}
	for _, c := range []struct {
		name string
		d    Direction
		want bool
	}{
		{"a change", Direction{Verdict: search.Change, Chosen: &Chosen{}, Before: congested}, true},
		{"nothing to gain", Direction{Verdict: search.NoChange, Before: congested}, true},
		{"a full link", Direction{Verdict: search.Inconclusive, Goal: Throughput, Before: full}, true},
		{"a full link's queue", Direction{Verdict: search.Inconclusive, Goal: Latency, Before: full}, false},
		{"tried in vain", Direction{Verdict: search.NoChange, Before: congested, Remedies: tried}, false},
		{"not shown", Direction{Verdict: search.Inconclusive, Before: congested}, false},
	} {
		if got := (&Result{Directions: []Direction{c.d}}).Helps(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// ECN is asked for only where loss limits, nothing else was shown to help, and it is not on.
func TestHostChanges_ECN(t *testing.T) {
	lossy := Direction{Before: Measured{Verdict: verdict.Verdict{Limiter: verdict.Congestion}}}
	off := &audit.Snapshot{Values: map[string]string{"net.ipv4.tcp_ecn": "2"}}
	if got := lossy.marks(off); len(got) != 1 || got[0].Name != "net.ipv4.tcp_ecn" || *got[0].Value != "1" {
		t.Errorf("%+v", got)
	}
	policed, helped, full := lossy, lossy, lossy
	policed.Before.Verdict.Subtype = verdict.Policer
	helped.Chosen = &Chosen{}
	full.Before.Verdict.Limiter = verdict.Bottleneck
	for _, d := range []Direction{policed, helped, full} {
		if got := d.marks(off); got != nil {
			t.Errorf("%+v: %+v", d.Before.Verdict, got)
		}
	}
	if got := lossy.marks(&audit.Snapshot{Values: map[string]string{"net.ipv4.tcp_ecn": "1"}}); got != nil {
		t.Errorf("it is on: %+v", got)
	}
}

// TestNarrower_OnlySmallerWindows checks that a route limits the window only where a smaller one was chosen.
func TestNarrower_OnlySmallerWindows(t *testing.T) {
	trials := []Trial{{Automatic: true, Effective: 65536}}
	for _, c := range []struct {
		setup Setup
		want  bool
	}{{Setup{Window: 14480}, true}, {Setup{Window: 14480, Congestion: "bbr"}, true}, {Setup{Window: 1 << 20}, false},
		{Setup{Congestion: "bbr"}, false}, {Setup{Streams: 4}, false}, {Setup{PacingBps: 1e6}, false}} {
		for direction, attribute := range map[transfer.Direction]string{transfer.Up: " cwnd", transfer.Down: " window"} {
			d := &Direction{Direction: direction, Path: Path{MSS: 1448}, Trials: trials, Chosen: &Chosen{Setup: c.setup}}
			got := d.narrower("192.0.2.0/24")
			if (len(got) > 0) != c.want || c.want && !strings.HasSuffix(got[0].Name, attribute) {
				t.Errorf("%s, %s: %+v", c.setup, direction, got)
			}
		}
	}
}

// Where acknowledgements' way back limits, a slow start that no delay ends is tried before windows are.
func TestControls_AckPath(t *testing.T) {
	peer := simpeer.New(narrow(), 1)
	for _, c := range []struct {
		limiter verdict.Name
		first   string
	}{{verdict.AckPath, "reno"}, {verdict.Congestion, "bbr"}} {
		l := newLoop(Config{Peer: peer}, transfer.Down)
		l.control, l.seen.trials = "cubic", []Trial{{Automatic: true, Limiter: c.limiter}}
		if got := l.controls(c.limiter); len(got) == 0 || got[0].Congestion != c.first {
			t.Errorf("%s: %v", c.limiter, got)
		}
		if acks := c.limiter == verdict.AckPath; l.seen.acksLimit() != acks || acks && l.seen.windowsMatter() {
			t.Errorf("%s: acknowledgements limit %t, windows matter %t", c.limiter, l.seen.acksLimit(), l.seen.windowsMatter())
		}
	}
	l := looped(Path{}, Trial{Automatic: true, Limiter: verdict.AckPath},
		Trial{Automatic: true, Limiter: verdict.Bottleneck})
	if l.seen.acksLimit() {
		t.Error("one run of two says so")
	}
}

// A policer's first burst is no rate to pace at, nor is the mean that its losses leave to one connection.
func TestPaceable_PolicedRate(t *testing.T) {
	policed := verdict.Verdict{Limiter: verdict.Congestion, Subtype: verdict.Policer, Evidence: []verdict.Evidence{
		{Code: verdict.PolicedRate, Values: verdict.Values{"steady_bps": 9.62e6}}}}
	for _, c := range []struct {
		name   string
		limits verdict.Verdict
		best   float64 // payload of a run
		want   float64
	}{
		{"no run is faster than the mean", policed, 9.4e6, 9.62e6},
		{"a faster run", policed, 10.6e6, 10.6e6},
		{"a run in the burst", policed, 80e6, 11.3e6},
		{"no policer", verdict.Verdict{Limiter: verdict.Congestion}, 9.4e6, 11.3e6},
	} {
		l := looped(Path{CapacityBps: 11.3e6})
		l.seen.best = c.best
		if got := l.seen.paceable(&c.limits); math.Abs(got/c.want-1) > 0.001 {
			t.Errorf("%s: %.4g", c.name, got)
		}
	}
}

// TestBaseline_SlowLinks checks that the first run on a slow link lasts until it shows the rate, and that an
// earlier run of a few segments is dropped.
func TestBaseline_SlowLinks(t *testing.T) {
	for _, bps := range []float64{14.4e3, 64e3} {
		path := narrow()
		path.RateBps, path.RTT, path.AutoWindow, path.Queue = bps, 130*time.Millisecond, 8760, 20000
		d := run(t, simpeer.New(path, 1), nil)
		if first := d.Trials[0]; first.bytes < enoughSegments*int64(path.MSS)*9/10 {
			t.Errorf("%.0f bit/s: the first run moved %d bytes", bps, first.bytes)
		}
		if got := d.Path.CapacityBps / path.CapacityBps(); got < 0.98 || got > 1.02 {
			t.Errorf("%.0f bit/s: the capacity is %.3f of the line's", bps, got)
		}
	}
}

// A route's initial window is for transfers that slow start limits and that this host sends.
func TestFile_InitialWindow(t *testing.T) {
	for _, c := range []struct {
		bytes int64
		want  bool
	}{{300e3, true}, {1e6, true}, {1e9, false}, {5e3, false}} {
		path := narrow()
		path.AutoWindow = 4 * path.BDP()
		for _, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
			d := run(t, simpeer.New(path, 1), func(cfg *Config) {
				cfg.FileSize, cfg.Budget, cfg.Directions = c.bytes, 10*time.Second, []transfer.Direction{direction}
			})
			if got := d.File.InitialWindow; (got > 0) != c.want || got > 100 {
				t.Errorf("%d bytes: %d segments", c.bytes, got)
			}
			if got := d.shortFile() > 0; got != (c.want && direction == transfer.Up) {
				t.Errorf("%d bytes, %s: changes the route: %v", c.bytes, direction, got)
			}
		}
	}
}

// TestApplied_Marked checks that a change to ECN reports whether any queue marks.
func TestApplied_Marked(t *testing.T) {
	run := func(have transfer.Fields, marked int64) *transfer.Result {
		return &transfer.Result{Spec: transfer.Spec{Direction: transfer.Up}, Near: &transfer.End{Streams: []transfer.Stream{
			{Samples: []transfer.Sample{{Have: have, DeliveredCE: marked}}}}}}
	}
	for _, c := range []struct {
		have   transfer.Fields
		marked int64
		want   int64 // -1: not known
	}{{transfer.HaveDeliveredCE, 0, 0}, {transfer.HaveDeliveredCE, 7, 14}, {0, 0, -1}} {
		a := Applied{Gain: stats.Interval{Low: 0.9, Mid: 1, High: 1.1}, Marked: new(int64)}
		a.count(run(c.have, c.marked))
		a.count(run(c.have, c.marked))
		a.decide(nil)
		if marked := a.Marked; (marked != nil) != (c.want >= 0) || marked != nil && *marked != c.want || a.Kept ||
			a.Reason.Code != NoGainShown || a.Reason.Values["low"] != 0.9 || a.Reason.Values["high"] != 1.1 {
			t.Errorf("%+v: %+v", c, a.Reason)
		}
	}
}

// TestGainInTurn_Ranks checks that the order of runs shows a gain where losses scatter goodput too much for an
// interval.
func TestGainInTurn_Ranks(t *testing.T) {
	lossy, steady := []float64{3, 12, 5, 15, 8, 1.5}, []float64{19, 18.9, 19.1, 19, 19, 18.8}
	if g := gainInTurn(lossy, steady); g.Low <= 1 || g.Mid < 2 {
		t.Errorf("always faster: %+v", g)
	}
	if g := gainInTurn(steady, lossy); g.High >= 1 {
		t.Errorf("always slower: %+v", g)
	}
	if g := gainInTurn(lossy, []float64{4, 14, 2, 11, 7, 16}); g.Low > 1 || g.High < 1 {
		t.Errorf("much the same: %+v", g)
	}
}

// TestBaseline_FullByLuck checks that a run that filled the link is luck where another setup carries clearly more:
// remedies for losses come before windows then, in longer transfers. A setup that carries all there is ends the
// comparison.
func TestBaseline_FullByLuck(t *testing.T) {
	trial := func(bps float64) Trial {
		return Trial{Automatic: true, Goodput: bps, Limiter: verdict.Bottleneck}
	}
	l := looped(Path{CapacityBps: 1.9e6, MSS: 1448}, trial(1.7e6), trial(1.5e6),
		Trial{Setup: Setup{Congestion: "bbr"}, Goodput: 1.88e6})
	l.path.lossRounds, l.path.round, l.path.knee = search.LossyRounds, 300*time.Millisecond, 75e3
	l.base.verdict.Limiter = verdict.Bottleneck
	if !l.base.fullByLuck() {
		t.Error("runs of 79 % and 89 % of what bbr carried fill the link")
	}
	if !l.compared.carriesAll(Setup{Congestion: "bbr"}) || l.compared.carriesAll(Setup{}) {
		t.Error("bbr carries all there is, cubic does not")
	}
	l.lengthen(longest)
	if fewest := (search.LossyTransfers - 1) * l.length(Setup{}); l.path.lossRounds != int(longest/l.path.round) ||
		l.budget.Time < fewest {
		t.Errorf("%d round trips, %v of %v", l.path.lossRounds, l.budget.Time, l.length(Setup{}))
	}
	l.seen.trials[0], l.seen.trials[1] = trial(1.85e6), trial(1.84e6)
	if l.base.fullByLuck() {
		t.Error("runs of 97 % do not")
	}
}

// A comparison that the budget ends before anybody seemed to be better leaves no leader to be proven.
func TestComparison_NoLeader(t *testing.T) {
	l := looped(Path{CapacityBps: 9e6, RTT: 4e7, MSS: 1448}, ran(t, Setup{}, 3e6,
		verdict.Verdict{Limiter: verdict.Congestion}))
	l.cfg.Peer, l.budget.stated.Time, l.control = simpeer.New(lossy(), 1), time.Second, "cubic" // spent
	if rivals := l.compared.candidates(Setup{}); len(rivals) == 0 {
		t.Fatal("nothing to compare")
	}
	err, c := l.compared.compare(t.Context(), search.Answer{}), l.compared
	if err != nil || c.leaderUnverified || c.winner != (Setup{}) {
		t.Errorf("%v; to be proven as a leader: %v, %s", err, c.leaderUnverified, c.winner)
	}
}
