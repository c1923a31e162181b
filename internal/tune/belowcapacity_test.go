package tune

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// shallow is a path whose queue is far shorter than its BDP: cubic keeps a share of the rate, bbr drops much.
func shallow(bps float64, rtt time.Duration, packets, harm, blindDrops float64) *simpath.Path {
	p := &simpath.Path{RateBps: bps, RTT: rtt, MSS: 1448, Queue: packets * 1500, Harm: harm, Drops: 0.006,
		BlindDrops: blindDrops, Noise: simpath.Noise{Dev: 0.01}}
	p.AutoWindow = 4 * p.BDP()
	return p
}

// residual is a path that drops a share of the bytes of a sender paced below its capacity, and leaves it a share of its
// rate if it slows down for losses.
func residual(p *simpath.Path, pacedDrops, pacedHarm float64) *simpath.Path {
	p.PacedDrops = pacedDrops
	p.PacedHarm = pacedHarm
	return p
}

// bursty is a path that drops from windows of a few segments on too.
func bursty(p *simpath.Path, pacedDrops, pacedHarm float64) *simpath.Path {
	p.Cliff = 4 * float64(p.MSS)
	return residual(p, pacedDrops, pacedHarm)
}

// Where a short queue drops before any delay shows, a setup below the capacity wins over one that retransmits much.
func TestTune_ShallowQueue(t *testing.T) {
	for _, c := range []struct {
		name string
		path *simpath.Path
		high float64 // share of the bytes sent that the winner may retransmit
	}{
		{"100 Mbit/s, 150 ms, 64 packets", shallow(100e6, 150*time.Millisecond, 64, 0.15, 0.43), 0.01},
		{"40 Mbit/s, 30 ms, 6 packets", shallow(40e6, 30*time.Millisecond, 6, 0.25, 0.05), 0.01},
		{"20 Mbit/s, 80 ms, 10 packets", shallow(20e6, 80*time.Millisecond, 10, 0.3, 0.2), 0.01},
		{"300 Mbit/s, 20 ms, 30 packets", shallow(300e6, 20*time.Millisecond, 30, 0.5, 0.3), 0.01},
		{"5 Mbit/s, 250 ms, 8 packets", shallow(5e6, 250*time.Millisecond, 8, 0.4, 0.12), 0.01},
		{"60 Mbit/s, 120 ms, 40 packets; pacing leaves a tenth of the losses",
			residual(shallow(60e6, 120*time.Millisecond, 40, 0.2, 0.3), 0.0006, 1), 0.01},
		{"40 Mbit/s, 30 ms, 6 packets; bursts of a window and of a paced sender are dropped too",
			bursty(shallow(40e6, 30*time.Millisecond, 6, 0.25, 0.11), 0.002, 0.3), 0.005},
		{"15 Mbit/s, 90 ms, 8 packets; bursts of a window and of a paced sender are dropped too",
			bursty(shallow(15e6, 90*time.Millisecond, 8, 0.3, 0.2), 0.003, 0.5), 0.005},
	} {
		for seed := range uint64(3) {
			d := run(t, simpeer.New(c.path, seed), func(cfg *Config) { cfg.Seed = seed })
			if d.Chosen == nil {
				t.Errorf("%s, seed %d: %s: %s", c.name, seed, d.Verdict, d.Reason.Code)
				continue
			}
			ratio, known := d.After.Typical.RetransmitRatio()
			if !known || ratio > c.high || d.After.Interval.Mid < 0.9*c.path.CapacityBps() {
				t.Errorf("%s, seed %d: %s gives %.3g of %.3g bit/s and retransmits %.2f", c.name, seed, d.Chosen,
					d.After.Interval.Mid, c.path.CapacityBps(), ratio)
			}
			for i := range d.Trials {
				if _, known := d.Trials[i].retransmitRatio(); !known {
					t.Errorf("%s: the retransmissions of %s are not known", c.name, d.Trials[i].name())
				}
			}
		}
	}
}

// A path that drops from tiny windows on, to a sender that can neither pace nor use streams, leaves bbr: the note says
// what it retransmits.
func TestTune_WarnsAboutRetransmissions(t *testing.T) {
	path := shallow(100e6, 150*time.Millisecond, 64, 0.15, 0.43)
	path.Cliff = 4 * float64(path.MSS)
	peer := simpeer.New(path, 1)
	peer.Fail = func(s transfer.Spec) error {
		if s.Near.PacingBps > 0 || s.Streams > 1 {
			return errors.New("not here")
		}
		return nil
	}
	d := run(t, peer, nil)
	said := 0.0
	before := 0.0
	for _, w := range d.Warnings {
		if w.Code == RetransmitsMuch {
			said = w.Values["retransmitted"]
			before = w.Values["retransmitted_before"]
		}
	}
	if d.Chosen == nil || d.Chosen.Congestion != lossBlind || said < 0.4 || said > 0.46 ||
		before < 0.005 || before > 0.007 {
		t.Errorf("%+v, %s; said %.2f, before %.3f", d.Chosen, d.Reason.Code, said, before)
	}
}

// Behind a policer pacing just below its rate wins over bbr and streams, which carry hardly more and retransmit much.
// keeps is the baseline's share of the policed rate, blind the share that bbr retransmits, bucket the bucket's size as
// time at the rate.
func TestTune_Policer(t *testing.T) {
	for _, c := range []struct {
		bps          float64
		rtt          time.Duration
		keeps, blind float64
		bucket       time.Duration
	}{
		{50e6, 30 * time.Millisecond, 0.91, 0.12, 40 * time.Millisecond},
		{14e6, 30 * time.Millisecond, 0.9, 0.02, 35 * time.Millisecond},
		{14e6, 5 * time.Millisecond, 0.9, 0.12, 100 * time.Millisecond},
		{100e6, 40 * time.Millisecond, 0.83, 0.05, 5 * time.Millisecond},
		{14e6, 150 * time.Millisecond, 0.9, 0.12, 400 * time.Millisecond},
		{250e6, 5 * time.Millisecond, 0.86, 0.02, 60 * time.Millisecond},
		{2e6, 30 * time.Millisecond, 0.8, 0.12, 100 * time.Millisecond},
		{50e6, 150 * time.Millisecond, 0.8, 0.12, 400 * time.Millisecond},
		{14e6, 5 * time.Millisecond, 0.95, 0.12, 100 * time.Millisecond},
		{50e6, 5 * time.Millisecond, 0.95, 0.12, 20 * time.Millisecond},
		{30e6, 25 * time.Millisecond, 0.98, 0.2, 270 * time.Millisecond},
		{8e6, 60 * time.Millisecond, 0.98, 0.2, 300 * time.Millisecond},
		{120e6, 10 * time.Millisecond, 0.98, 0.15, 250 * time.Millisecond},
	} {
		const burst = 4 // times the rate
		path := shallow(c.bps, c.rtt, 0, c.keeps, c.blind)
		path.Drops, path.Policed = 0.08, true
		path.EarlyBps, path.EarlyFor = burst*c.bps, c.bucket/(burst-1)
		for seed := range uint64(3) {
			d := run(t, simpeer.New(path, seed), func(cfg *Config) { cfg.Seed = seed })
			if d.Chosen == nil {
				t.Errorf("%+v, seed %d: %s: %s", c, seed, d.Verdict, d.Reason.Code)
				continue
			}
			if d.Chosen.Congestion != "" || slices.ContainsFunc(d.Trials, func(t Trial) bool {
				return t.Setup.Congestion != "" && t.Setup.PacingBps > 0
			}) {
				t.Errorf("%+v, seed %d: %s, though pacing alone removes the losses", c, seed, d.Chosen)
			}
			ratio, known := d.After.Typical.RetransmitRatio()
			share := d.After.Interval.Mid / path.CapacityBps()
			if !known || ratio > 0.01 || share < 0.9 || share > 1.02 {
				t.Errorf("%+v, seed %d: %s gives %.3f of the rate and retransmits %.3f", c, seed, d.Chosen, share, ratio)
			}
		}
	}
}

// TestTune_WindowOfBDPWithoutPacing checks that a window that does not overflow a shallow queue is found where the
// sender has neither BBR nor pacing, and that nothing else than windows and streams is tried.
func TestTune_WindowOfBDPWithoutPacing(t *testing.T) {
	system := advice.Windows10
	for _, c := range []struct {
		bps         float64
		rtt         time.Duration
		queue, keep float64 // packets, and the share of the rate that automatic windows leave
	}{
		{40e6, 30 * time.Millisecond, 6, 0.5}, {40e6, 30 * time.Millisecond, 6, 0.2}, {40e6, 30 * time.Millisecond, 6, 0.8},
		{20e6, 60 * time.Millisecond, 4, 0.4}, {100e6, 20 * time.Millisecond, 10, 0.6},
	} {
		for seed := range uint64(3) {
			path := shallow(c.bps, c.rtt, c.queue, c.keep, 0.1)
			d := run(t, simpeer.New(path, seed), func(cfg *Config) {
				cfg.Seed = seed
				cfg.Near = &system
				cfg.Far = &system
			})
			if d.Chosen == nil || d.Chosen.Window == 0 || float64(d.Chosen.Window) > path.BDP()+path.Queue ||
				d.After.Interval.Mid < 0.9*path.CapacityBps() {
				t.Errorf("%+v, seed %d: %s: %+v", c, seed, d.Reason.Code, d.Chosen)
			}
			if slices.ContainsFunc(d.Trials, func(t Trial) bool { return t.Setup.Congestion != "" || t.Setup.PacingBps > 0 }) {
				t.Errorf("%+v, seed %d: tried what the system lacks", c, seed)
			}
		}
	}
}

// TestTune_WindowSparesLosses checks that a window is found where bbr carries all that a slow line does, and
// overflows its queue as the baseline does.
func TestTune_WindowSparesLosses(t *testing.T) {
	for _, bps := range []float64{56_000, 128_000, 1e6} {
		for seed := range uint64(3) {
			path := shallow(bps, 150*time.Millisecond, 6, 0.99, 0.001)
			path.Drops = 0.19
			path.AutoWindow = 64 << 10
			peer := simpeer.New(path, seed)
			peer.BlindRetransmits = 0.15
			d := run(t, peer, func(cfg *Config) { cfg.Seed = seed })
			t.Log(bps, d.Reason.Code, d.Chosen, d.Before.Verdict.Limiter, len(d.Trials))
			if d.After == nil || d.After.Retransmits == nil || *d.After.Retransmits > 0.01 {
				t.Errorf("%g bit/s, seed %d: %s: %+v", bps, seed, d.Reason.Code, d.Chosen)
			}
		}
	}
}

// TestTune_LargeBucket has policers with buckets of megabytes: runs that do not empty the bucket are faster than the
// policed rate, without loss.
func TestTune_LargeBucket(t *testing.T) {
	for _, c := range []struct {
		bps, keeps float64
		rtt        time.Duration
		bucket     float64 // bytes
	}{
		{14e6, 0.95, 30 * time.Millisecond, 2e6},
		{14e6, 0.8, 150 * time.Millisecond, 2e6},
		{17e6, 0.85, 12 * time.Millisecond, 1.5e6},
		{25e6, 0.9, 20 * time.Millisecond, 2.5e6},
		{50e6, 0.9, 5 * time.Millisecond, 4e6},
		{40e6, 0.85, 10 * time.Millisecond, 3e6},
	} {
		const burst = 4 // times the rate
		path := shallow(c.bps, c.rtt, 0, c.keeps, 0.02)
		path.Drops, path.Policed = 0.08, true
		path.EarlyBps = burst * c.bps
		path.EarlyFor = time.Duration(c.bucket * 8 / c.bps / (burst - 1) * float64(time.Second))
		for seed := range uint64(3) {
			peer := simpeer.New(path, seed)
			peer.Bucket = true
			d := run(t, peer, func(cfg *Config) { cfg.Seed = seed })
			if d.Chosen == nil {
				t.Errorf("%+v, seed %d: %s: %s", c, seed, d.Verdict, d.Reason.Code)
				continue
			}
			if share := d.After.Interval.Mid / path.CapacityBps(); share < 0.9 || share > 1.02 {
				t.Errorf("%+v, seed %d: %s gives %.3f of the rate", c, seed, d.Chosen, share)
			}
		}
	}
}

// TestPacingBracket has paths of a capacity, with the rate that is tried first, the best goodput so far, and the lowest
// rate that is known to lose.
func TestPacingBracket(t *testing.T) {
	for _, c := range []struct {
		name                  string
		capacity, first, best float64
		lost                  float64
		low, high             float64 // of the clean rate, over the capacity
		runs                  int
	}{
		{"a right estimate", 100, 97, 56, 0, 0.97, 0.97, 2},
		{"an estimate that is too high", 100, 130, 56, 0, 0.92, 1, 5},
		{"an estimate that is far too high", 50, 900, 40, 0, 0.8, 1, 5},
		{"an estimate that is too low", 100, 30, 30, 0, 0.9, 1, 5},
		{"no rate is clean", 0, 97, 56, 0, 0, 0, 5},
		{"a policer that leaves one connection 0.9", 100, 87, 90, 113, 0.92, 1, 4},
		{"a policer that leaves one connection 0.81", 100, 79, 81, 101, 0.92, 1, 4},
		{"a policer, and bbr carries all", 100, 97, 100, 113, 0.92, 1, 3},
	} {
		p := pacingBracket{rate: c.first, floor: pacingFloor * c.best, lost: c.lost}
		runs := 0
		for more := true; more && runs < mostPacedProbes; runs++ {
			more = p.observe(p.rate <= c.capacity)
		}
		if p.clean < c.low*c.capacity-0.01 || p.clean > c.high*c.capacity+0.01 || runs > c.runs {
			t.Errorf("%s: %.1f after %d runs", c.name, p.clean, runs)
		}
	}
}

// Random loss does not depend on the rate: pacing is tried by one run, and the answer stays the congestion control.
func TestTune_PacesOnceWhereLossIsRandom(t *testing.T) {
	path := narrow()
	path.AutoWindow, path.Loss = 4*path.BDP(), 0.003
	d := run(t, simpeer.New(path, 1), nil)
	paced := 0
	for i := range d.Trials {
		if d.Trials[i].Setup.PacingBps > 0 {
			paced++
		}
	}
	if paced != 1 || d.Verdict != search.Change || d.Chosen.Congestion != lossBlind {
		t.Errorf("%d paced runs; %s: %+v", paced, d.Verdict, d.Chosen)
	}
}

// TestBelowCapacity_Refine has goodputs and shares of retransmitted bytes of the baseline and a paced run.
func TestBelowCapacity_Refine(t *testing.T) {
	for _, c := range []struct {
		name         string
		bps, ratio   float64
		queue        float64 // BDPs; 0: a policer
		paced        float64 // 0: no paced run was clean
		limiter      verdict.Name
		want         string
		evidenceSaid bool
	}{
		{"a policer", 44e6, 0.08, 0, 48e6, verdict.Congestion, verdict.Policer, true},
		{"a policer behind an open verdict", 46e6, 0.1, 0, 48e6, verdict.Unknown, verdict.Policer, true},
		{"a queue of a tenth of the BDP", 44e6, 0.08, 0.1, 48e6, verdict.Congestion, "", true},
		{"a queue of 0.3 BDP", 44e6, 0.08, 0.3, 48e6, verdict.Congestion, "", true},
		{"a queue of 0.6 BDP", 46e6, 0.04, 0.6, 48e6, verdict.Unknown, "", true},
		{"less of the rate is left", 30e6, 0.03, 0, 48e6, verdict.Congestion, "", true},
		{"little is lost", 44e6, 0.01, 0, 48e6, verdict.Congestion, "", false},
		{"pacing loses as well", 44e6, 0.08, 0, 0, verdict.Congestion, "", false},
		{"a full link", 44e6, 0.08, 0, 48e6, verdict.Bottleneck, "", false},
	} {
		peer := simpeer.New(shallow(50e6, 30*time.Millisecond, 10, c.bps/48.2e6, 0.1), 1)
		peer.Path.Drops = c.ratio
		peer.Policed = c.queue == 0
		peer.Path.Queue = c.queue * peer.Path.BDP()
		r, err := transfer.Run(t.Context(), peer, transfer.Spec{Direction: transfer.Up, Time: 4 * time.Second}, nil)
		if err != nil {
			t.Fatal(err)
		}
		l := looped(Path{}, Trial{Automatic: true, Goodput: c.bps, result: r})
		if c.paced > 0 {
			l.compared.below.clean = &Trial{Goodput: c.paced, Setup: Setup{PacingBps: 50e6}, result: r}
		}
		m := Measured{Verdict: verdict.Verdict{Limiter: c.limiter, Shares: verdict.Shares{c.limiter: 1}}}
		m.Interval.Mid = c.bps
		l.compared.below.refine(&m)
		if v := m.Verdict; v.Subtype != c.want || (len(v.Evidence) > 0) != c.evidenceSaid {
			t.Errorf("%s: %s, %q, %+v", c.name, v.Limiter, v.Subtype, v.Evidence)
		}
		if v := m.Verdict; v.Shares[v.Limiter] != 1 {
			t.Errorf("%s: %s of %v", c.name, v.Limiter, v.Shares)
		}
	}
}
