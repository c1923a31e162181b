package change

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// path is a far end in continuous time: noise of a kind that resembles itself over a time.
type path struct {
	rng        *rand.Rand
	kind       string
	correlated time.Duration // 0: every result by itself
	at         time.Time
	slow       float64 // a standard normal process (Ornstein–Uhlenbeck), at the time at
	fallen     time.Time
}

func (p *path) measure(at time.Time) float64 {
	keep := 0.0
	if p.correlated > 0 {
		keep = math.Exp(-at.Sub(p.at).Seconds() / p.correlated.Seconds())
	}
	p.slow = keep*p.slow + math.Sqrt(1-keep*keep)*p.rng.NormFloat64()
	p.at = at
	v := 100 * math.Exp(0.02*p.slow)
	switch p.kind {
	case "noisy":
		v = 100 * math.Exp(0.12*p.slow)
	case "two modes": // a third of the time
		if p.slow > 0.43 {
			v = 75 * math.Exp(0.02*p.rng.NormFloat64())
		}
	case "daily swing":
		v *= 1 + 0.06*math.Sin(2*math.Pi*float64(at.Unix()%86400)/86400)
	case "outliers": // one in 25
		if p.slow > 1.75 {
			v = 100 * (0.3 + 0.3*p.rng.Float64())
		}
	}
	if !p.fallen.IsZero() && !at.Before(p.fallen) {
		v *= 0.7
	}
	return v
}

// follow measures a path at exponential times, an hour apart in the mean, and again at once
// where the track wants it, until it has so many scheduled results or until says so.
func follow(p *path, scheduled int, each func(t *Track, r Result, e Event) (stop bool)) {
	var t Track
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	next := now
	for n := 0; n < scheduled; {
		r := Result{At: next}
		if at, ok := t.Wants(); ok && at.Before(next) {
			r = Result{At: at, Retest: true}
		} else {
			if at := t.NotBefore(); r.At.Before(at) {
				r.At = at
			}
			n++
			next = r.At.Add(time.Duration(p.rng.ExpFloat64() * float64(time.Hour)))
		}
		r.Value = p.measure(r.At)
		if each(&t, r, t.Add(r)) {
			return
		}
	}
}

var kinds = []string{"quiet", "noisy", "two modes", "daily swing", "outliers"}

// TestChangedIsRarelyWrong: on paths that do not change, `changed` comes at most once in a
// thousand results, whether neighbours in time are alike over minutes, hours or not at all.
func TestChangedIsRarelyWrong(t *testing.T) {
	series := map[string]int{"quiet": 4, "daily swing": 4, "noisy": 25, "two modes": 10, "outliers": 10}
	for _, kind := range kinds {
		for _, alike := range []time.Duration{0, 10 * time.Minute, 2 * time.Hour} {
			rng := rand.New(rand.NewPCG(7, uint64(alike)))
			results, changed, dips, low := 0, 0, 0, 0
			for range series[kind] {
				follow(&path{rng: rng, kind: kind, correlated: alike}, 400, func(track *Track, r Result, e Event) bool {
					results++
					switch e {
					case Changed:
						changed++
						if track.Shift.LowConfidence {
							low++
						}
					case Dipped:
						dips++
					}
					return false
				})
			}
			t.Logf("%s alike over %v: %d results, %d changed (%d of low confidence), %d dips", kind, alike, results,
				changed, low, dips)
			if float64(changed) > 0.001*float64(results) {
				t.Errorf("%s alike over %v: %d of %d results lead to a change", kind, alike, changed, results)
			}
		}
	}
}

// TestAFallIsSeen: to 70 %, after at most 9 results in the median, told as a dip within 30
// minutes of the first low result that was suspected.
func TestAFallIsSeen(t *testing.T) {
	for _, kind := range kinds {
		rng := rand.New(rand.NewPCG(8, 8))
		var delays []float64
		const series = 31
		for range series {
			p := &path{rng: rng, kind: kind, correlated: 10 * time.Minute,
				fallen: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Add(80 * time.Hour)}
			since := 0
			follow(p, 160, func(track *Track, r Result, e Event) bool {
				if r.At.Before(p.fallen) {
					return false
				}
				since++
				if e == Dipped {
					if took := r.At.Sub(track.Since); took > 30*time.Minute {
						t.Errorf("%s: a dip is told after %v", kind, took)
					}
				}
				if e == Changed && track.Shift.After < track.Shift.Before {
					delays = append(delays, float64(since))
				}
				return e == Changed
			})
		}
		t.Logf("%s: %d of %d, median %v", kind, len(delays), series, median(delays))
		if len(delays) < series*9/10 || median(delays) > 9 {
			t.Errorf("%s: a fall to 70 %% is seen in %d of %d, after %v results", kind, len(delays), series, median(delays))
		}
	}
}
