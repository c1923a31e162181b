package tune

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// TestTune_FiguresAgree checks the figures of whole runs on lossy paths: each factor is the ratio of the goodputs
// next to it, a row has the gain of the result, no gain that is only likely has an interval above 1, and windows of
// equal goodput have one limiter.
func TestTune_FiguresAgree(t *testing.T) {
	t.Parallel()
	changes, likely := 0, 0
	for seed := range uint64(60) {
		peer := simpeer.RandomLossy(rand.New(rand.NewPCG(5000+seed, 7)))
		d := run(t, peer, func(cfg *Config) { cfg.Seed = seed })
		before := d.Before.Interval.Mid
		differ := func(a, b float64) bool { return math.Abs(a/b-1) > 1e-9 }
		for _, r := range d.Remedies {
			if differ(r.Gain.Mid, r.Goodput/before) && r.Base == (Setup{}) {
				t.Errorf("seed %d: %s: %.4g bit/s is × %.3g of %.4g", seed, r.Name, r.Goodput, r.Gain.Mid, before)
			}
			chosen := d.Chosen != nil && d.Chosen.Setup == r.Setup
			if chosen && differ(r.Gain.Mid, d.Gain.Mid) || d.Decision.Strength == search.Likely && r.Gain.Low > 1 {
				t.Errorf("seed %d: %s: row %+v, result %+v, %s", seed, r.Name, r.Gain, d.Gain, d.Decision.Strength)
			}
		}
		if d.Chosen != nil {
			changes++
			if d.Decision.Strength == search.Likely {
				likely++
			}
			if differ(d.Gain.Mid, d.After.Interval.Mid/before) {
				t.Errorf("seed %d: %.4g to %.4g bit/s is × %.3g", seed, before, d.After.Interval.Mid, d.Gain.Mid)
			}
		}
		windows := bySetup((&observations{trials: d.Trials}).of(func(t *Trial) bool { return t.Remedy == "" }))
		for _, w := range windows {
			m := (&observations{path: &pathModel{}}).measured(w)
			equal := m.Interval.Mid/before >= alike && m.Interval.Mid/before <= 1/alike
			if equal && (d.Chosen == nil || d.Chosen.Setup != w[0].Setup) && w[0].Limiter != d.Before.Verdict.Limiter {
				t.Errorf("seed %d: %s gives as much as automatic, but %s and %s limit", seed, w[0].Setup, w[0].Limiter,
					d.Before.Verdict.Limiter)
			}
		}
	}
	if changes < 20 || likely < 2 {
		t.Errorf("only %d changes, %d of them likely", changes, likely)
	}
}
