package tune

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// lossy is 10 Mbit/s and 200 ms with a loss that leaves a third of it, after slow start has had
// all of it for eight round trips.
func lossy() *simpath.Path {
	p := &simpath.Path{RateBps: 10e6, RTT: 200 * time.Millisecond, MSS: 1448, Queue: 1e6, Harm: 1, Loss: 0.002,
		Noise: simpath.Noise{Dev: 0.02}}
	p.AutoWindow = 4 * p.BDP()
	p.EarlyBps, p.EarlyFor = p.CapacityBps(), 8*p.RTT
	return p
}

// TestTune_LongRunsOnLossyPaths checks that the rate before the first loss is not taken for the rate of a path that
// loses.
func TestTune_LongRunsOnLossyPaths(t *testing.T) {
	d := run(t, simpeer.New(lossy(), 1), nil)
	truth := lossy().Automatic()
	if off := math.Abs(d.Before.Interval.Mid/truth - 1); off > 0.15 {
		t.Errorf("before is %.3g bit/s, in the long run it is %.3g", d.Before.Interval.Mid, truth)
	}
	if d.Chosen == nil || d.Chosen.Congestion != "bbr" || d.Gain.Low > lossy().CapacityBps()/truth*1.1 {
		t.Errorf("%+v, gain %+v: %s", d.Chosen, d.Gain, d.Reason.Code)
	}
	rounds := func(t *Trial) float64 { return t.result.Spec.Time.Seconds() / lossy().RTT.Seconds() }
	for _, trial := range d.Trials {
		if got := rounds(&trial); got < search.LossyRounds {
			t.Errorf("%s lasted for %.1f round trips", trial.name(), got)
		}
	}
	if got := rounds(&d.Trials[len(d.Trials)-1]); got < longest.Seconds()/lossy().RTT.Seconds() {
		t.Errorf("where losses limit, the last run was over after %.1f round trips", got)
	}
}

// TestTune_ShortBudgetOnLossyPath checks that a stated budget of few long transfers leads to a proposal of a larger
// one.
func TestTune_ShortBudgetOnLossyPath(t *testing.T) {
	for _, budget := range []time.Duration{15 * time.Second, 25 * time.Second} {
		d := run(t, simpeer.New(lossy(), 1), func(cfg *Config) { cfg.Budget = budget })
		var spent time.Duration
		for _, trial := range d.Trials {
			spent += trial.elapsed
		}
		if spent > budget {
			t.Errorf("%v: spent %v", budget, spent)
		}
		if d.Chosen == nil && (d.Open == nil || d.Open.Budget <= budget) {
			t.Errorf("%v: %+v, %s", budget, d.Open, d.Reason.Code)
		}
	}
}

// A policer's bucket is no rate: neither of today's nor of the path.
func TestTune_PolicerBucket(t *testing.T) {
	path := narrow()
	path.RateBps, path.AutoWindow, path.Queue = 10e6, 4e6, 1e6
	path.Loss = 1e-9 // of no weight
	path.EarlyBps, path.EarlyFor = 90e6, 300*time.Millisecond
	peer := simpeer.New(path, 1)
	peer.Policed = true
	d := run(t, peer, nil)
	want := path.CapacityBps()
	if got := d.Before.Interval; math.Abs(got.Mid/want-1) > 0.03 || got.High > 1.03*want {
		t.Errorf("before %+v, the policer lets %.3g through", got, want)
	}
	if got := d.Path.CapacityBps; math.Abs(got/want-1) > 0.03 {
		t.Errorf("carries %.3g, the policer lets %.3g through", got, want)
	}
	if d.Chosen != nil {
		t.Errorf("%+v: %s", d.Chosen, d.Reason.Code)
	}
}

// TestMeasured_IntervalEndsAtCapacity checks that no interval reaches above the path's capacity or, where only
// windows limit, above their rate.
func TestMeasured_IntervalEndsAtCapacity(t *testing.T) {
	var trials []*Trial
	for _, bps := range []float64{1e6, 9e6, 3e6} {
		trials = append(trials, &Trial{Goodput: bps, Effective: 65536})
	}
	for _, c := range []struct {
		path Path
		most float64
	}{
		{Path{CapacityBps: 12e6}, 12e6},
		{Path{CapacityBps: 12e6, AtLeast: true, RTT: 40 * time.Millisecond}, 65536 * 8 / 0.04},
		{Path{CapacityBps: 2e6}, 3e6}, // the middle is what was seen
	} {
		l := looped(c.path)
		if got := l.seen.measured(trials).Interval; got.High > c.most*1.0001 || got.High < got.Mid {
			t.Errorf("%+v: %+v", c.path, got)
		}
	}
}

// TestTune_SlowLossyFullPath checks that a few long transfers, one with a control that ignores losses, show a full
// link on a path that loses, without a window search.
func TestTune_SlowLossyFullPath(t *testing.T) {
	path := lossy()
	path.Loss, path.EarlyBps, path.Noise.Dev, path.AutoWindow = 1e-5, 0, 0.004, 2*path.BDP()
	for seed := range uint64(10) {
		d := run(t, simpeer.New(path, seed), nil)
		var spent time.Duration
		blind := false
		for _, trial := range d.Trials {
			spent += trial.elapsed
			blind = blind || trial.Setup.Congestion == lossBlind
		}
		if d.Verdict != search.NoChange || d.Reason.Code == NothingHelps || !blind ||
			spent > 40*time.Second {
			t.Errorf("seed %d: %s: %s, %d trials of %v, bbr: %v", seed, d.Verdict, d.Reason.Code, len(d.Trials), spent, blind)
		}
	}
}

// TestExtended_PolicerSuspected checks that many losses without a queue make the first run long enough to show a
// policer; few do not.
func TestExtended_PolicerSuspected(t *testing.T) {
	for ratio, want := range map[float64]time.Duration{0.15: policedRun, 0.004: time.Second} {
		end := &transfer.End{Streams: []transfer.Stream{{Last: time.Second}}}
		trial := &Trial{Limiter: verdict.Congestion, result: &transfer.Result{Near: end, Far: end},
			verdict: verdict.Verdict{Limiter: verdict.Congestion, Evidence: []verdict.Evidence{{Code: verdict.LossWithoutQueue,
				Values: verdict.Values{"retransmitted_ratio": ratio}}}}}
		if got := extended(trial, time.Second); got != want {
			t.Errorf("%.1f %% lost: %v", 100*ratio, got)
		}
	}
	// Half of a short budget is enough to show a policer.
	for stated, want := range map[time.Duration]time.Duration{0: policedRun, 12 * time.Second: 3500 * time.Millisecond,
		time.Minute: policedRun} {
		b := &budget{stated: search.Budget{Time: stated}, spent: search.Budget{Time: 2500 * time.Millisecond}}
		if got := b.remainingBudget(policedRun); got != want || got < threshold.PolicedTime.Time() {
			t.Errorf("of %v: %v", stated, got)
		}
	}
}

// TestCarries_PolicedRate checks that a policer's long-run rate is the capacity, whatever short runs took from its
// bucket.
func TestCarries_PolicedRate(t *testing.T) {
	policed := verdict.Verdict{Limiter: verdict.Congestion, Subtype: verdict.Policer, Evidence: []verdict.Evidence{
		{Code: verdict.PolicedRate, Values: verdict.Values{"steady_bps": 9.52e6}}}}
	// Where goodputs leave out the bucket, they show more than one connection keeps.
	for between, want := range map[float64]float64{0: 9.52e6, 9.52e6: 9.865e6} {
		l := looped(Path{CapacityBps: 9.91e6, RTT: 2e7, MSS: 1428}, ran(t, Setup{}, 9.82e6, policed),
			ran(t, Setup{}, 9.91e6, policed))
		l.compared.remedies = []Remedy{{Name: "bbr"}}
		l.seen.longRun = between
		if l.seen.carries(true); l.path.CapacityBps != want {
			t.Errorf("%.3g after losses: carries %.4g", between, l.path.CapacityBps)
		}
	}
}

// Where loss keeps what is in flight well below a window, holding it down is not tried.
func TestIdeas_UnreachedWindow(t *testing.T) {
	congested := verdict.Verdict{Limiter: verdict.Congestion}
	for effective, want := range map[int]bool{30e3: false, 95e3: true, 300e3: true} {
		l := looped(Path{CapacityBps: 20e6, RTT: 4e7, MSS: 1448, Window: 100e3}, Trial{Automatic: true, Effective: effective})
		l.compared.limits = congested
		tried := slices.ContainsFunc(l.compared.ideas(Setup{}), func(s Setup) bool { return s.Window > 0 })
		if tried != want {
			t.Errorf("%d bytes in flight: %v", effective, tried)
		}
	}
}

// Where losses make every run another and nothing helps, at most one run in a hundred shows a gain, the
// proofs of leaders among them.
func TestTune_NoFalseGainWhereLossesScatter(t *testing.T) {
	t.Parallel()
	const seeds = 400
	shown, likely := 0, 0
	for seed := range uint64(seeds) {
		path := lossy()
		path.Noise.Dev = 0.1
		peer := simpeer.New(path, seed)
		peer.Policed = true // neither bbr nor more streams take losses otherwise
		d := run(t, peer, func(cfg *Config) { cfg.Budget, cfg.Seed = 3*time.Minute, seed })
		if d.Chosen != nil {
			likely++
		}
		if d.Decision.Strength == search.Shown && d.Chosen != nil {
			shown++
		}
	}
	if shown > seeds/100 || likely > seeds/20 {
		t.Errorf("a gain is shown in %d and at least likely in %d of %d", shown, likely, seeds)
	}
}

// TestTrial_Drained checks that a queue which is gone in the end was slow start's, where losses followed. A queue
// that remains to the end was not, and without a queue none is gone.
func TestTrial_Drained(t *testing.T) {
	for _, c := range []struct {
		name     string
		lossless bool
		queued   func(share float64) bool
		want     bool
	}{
		{"at first", false, func(share float64) bool { return share < 0.5 }, true},
		{"at first, and nothing was lost", true, func(share float64) bool { return share < 0.5 }, false},
		{"to the end", false, func(float64) bool { return true }, false},
		{"never", false, func(float64) bool { return false }, false},
		{"again in the end", false, func(share float64) bool { return share < 0.3 || share > 0.7 }, false},
	} {
		var all []transfer.Sample
		for i := range 40 {
			s := transfer.Sample{Have: transfer.HaveRTT | transfer.HaveMinRTT, RTT: 41 * time.Millisecond,
				MinRTT: 40 * time.Millisecond}
			if c.queued(float64(i) / 40) {
				s.RTT = 60 * time.Millisecond
			}
			all = append(all, s)
		}
		trial := Trial{Lossless: c.lossless, result: &transfer.Result{Spec: transfer.Spec{Direction: transfer.Up},
			Near: &transfer.End{Streams: []transfer.Stream{{Samples: all}}}}}
		if got := trial.drained(); got != c.want {
			t.Errorf("a queue %s: drained %v", c.name, got)
		}
	}
}

// A link that was full and lost segments is looked at for longer, once; where losses limit it then, that is what
// limits, and all later transfers last as long.
func TestOutlast(t *testing.T) {
	for _, c := range []struct {
		limiter  verdict.Name
		lossless bool
		want     int
		limits   verdict.Name
	}{
		{verdict.Bottleneck, true, 1, verdict.Bottleneck},
		{verdict.ReceiverWindow, false, 1, verdict.ReceiverWindow},
		{verdict.Bottleneck, false, 1, verdict.Congestion},
	} {
		first := ran(t, Setup{}, 9e6, verdict.Verdict{Limiter: c.limiter})
		first.Lossless, first.Spec.Time = c.lossless, time.Second
		l := looped(Path{CapacityBps: 9e6, RTT: 200 * time.Millisecond, MSS: 1448}, first)
		path := lossy()
		l.cfg.Peer, l.base.verdict = simpeer.New(path, 1), verdict.Verdict{Limiter: c.limiter}
		l.path.round, l.path.knee, l.budget.Budget = path.RTT, path.BDP(), search.Budget{Time: time.Minute, Bytes: 1e9}
		for range 2 {
			if _, err := l.base.outlast(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		longer := l.seen.trials[len(l.seen.trials)-1].Spec.Time > 3*time.Second
		if len(l.seen.trials) != c.want || l.base.verdict.Limiter != c.limits || longer != (c.limits == verdict.Congestion) ||
			longer != (l.path.lossRounds > 0) {
			t.Errorf("%s, lossless %v: %d runs, %s, for %d round trips", c.limiter, c.lossless, len(l.seen.trials),
				l.base.verdict.Limiter, l.path.lossRounds)
		}
	}
}
