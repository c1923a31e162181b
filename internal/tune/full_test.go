package tune

import (
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// fullLine is 240 Mbit/s and 33 ms that reno fills in four of five runs; the others lose something early.
func fullLine(seed uint64) *simpeer.Peer {
	path := &simpath.Path{RateBps: 240e6, RTT: 33 * time.Millisecond, MSS: 1448, Harm: 1,
		Noise: simpath.Noise{Dev: 0.004, Stalls: 0.2}}
	path.Queue = path.BDP()
	path.AutoWindow = 4 * path.BDP()
	peer := simpeer.New(path, seed)
	peer.Losses = &simpeer.Losses{Control: "reno"}
	return peer
}

// TestTune_FullLineEndsAtOnce checks that nine of ten lines that most baseline runs fill are decided within 20 s.
func TestTune_FullLineEndsAtOnce(t *testing.T) {
	t.Parallel()
	const seeds = 40
	decided := 0
	for seed := range uint64(seeds) {
		d := run(t, fullLine(seed), func(cfg *Config) { cfg.Seed = seed })
		var took time.Duration
		for i := range d.Trials {
			took += d.Trials[i].elapsed
		}
		t.Log(d.Verdict, d.Reason.Code, d.Decision.Strength, took, len(d.Trials), d.Before.Verdict.Limiter)
		if d.Verdict == search.NoChange && d.Decision.Strength != search.Open && took <= 20*time.Second {
			decided++
		}
		each := !slices.ContainsFunc(d.Before.Goodputs, func(bps float64) bool { return bps < 0.95*d.Path.CapacityBps })
		if d.Reason.Code == LinkFull && (d.Decision.Strength == search.Shown) != each {
			t.Errorf("seed %d: %s, with runs of %.4g of %.4g", seed, d.Decision.Strength, d.Before.Goodputs,
				d.Path.CapacityBps)
		}
	}
	if decided < seeds*9/10 {
		t.Errorf("%d of %d are decided within 20 s", decided, seeds)
	}
}
