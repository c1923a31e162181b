package changepoint

import (
	"cmp"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// path simulates a far end with correlated noise of a kind.
type path struct {
	rng        *rand.Rand
	kind       string
	correlated time.Duration // 0: independent results
	at         time.Time
	slow       float64 // a standard normal process (Ornstein–Uhlenbeck), at the time at
	fallen     time.Time
	every      time.Duration // mean time between scheduled results; 0: 1 h
	unhurried  bool          // nobody retests
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

// follow measures a path at exponential intervals, and soon again when the track wants it, until it has enough
// scheduled results or each returns stop.
func follow(p *path, scheduled int, each func(t *Track, r Result, e Event) (stop bool)) {
	t := Track{Unhurried: p.unhurried}
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	next := now
	for n := 0; n < scheduled; {
		r := Result{At: next}
		if at, ok := t.Wants(); ok && at.Before(next) && !p.unhurried {
			r = Result{At: at, Retest: true}
		} else {
			if at := t.NotBefore(); r.At.Before(at) {
				r.At = at
			}
			n++
			next = r.At.Add(time.Duration(p.rng.ExpFloat64() * float64(cmp.Or(p.every, time.Hour))))
		}
		r.Value = p.measure(r.At)
		if each(&t, r, t.Add(r)) {
			return
		}
	}
}

var kinds = []string{"quiet", "noisy", "two modes", "daily swing", "outliers"}

// TestTrack_FalseAlarms: on unchanged paths `changed` comes at most once in 1,000 results, for noise correlated
// over minutes, hours or not at all. A dip comes at most ten times. Seeds differ from those that the thresholds
// were chosen with.
func TestTrack_FalseAlarms(t *testing.T) {
	series := map[string]int{"quiet": 2, "daily swing": 2, "noisy": 25, "two modes": 12, "outliers": 10}
	for _, kind := range kinds {
		for _, alike := range []time.Duration{0, 10 * time.Minute, 2 * time.Hour} {
			results, changed, dips, low := 0, 0, 0, 0
			for _, seed := range []uint64{7, 99, 2026} {
				rng := rand.New(rand.NewPCG(seed, uint64(alike)))
				for range series[kind] {
					follow(&path{rng: rng, kind: kind, correlated: alike}, 400, func(track *Track, _ Result, e Event) bool {
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
			}
			t.Logf("%s alike over %v: %d results, %d changed (%d of low confidence), %d dips", kind, alike, results,
				changed, low, dips)
			if float64(changed) > 0.001*float64(results) {
				t.Errorf("%s alike over %v: %d of %d results lead to a change", kind, alike, changed, results)
			}
			if float64(dips) > 0.01*float64(results) {
				t.Errorf("%s alike over %v: %d of %d results lead to a dip", kind, alike, dips, results)
			}
		}
	}
}

// TestTrack_DetectsDrop: a drop to 70 % is detected after at most 9 results in the median, reported as a dip within
// 30 min of the first suspected result, and as a change only after two scheduled visits at least 2 h apart.
func TestTrack_DetectsDrop(t *testing.T) {
	for _, kind := range kinds {
		for _, every := range []time.Duration{time.Hour, 6 * time.Hour} {
			for _, alike := range []time.Duration{0, 10 * time.Minute, 2 * time.Hour} {
				var delays []float64
				const series = 41
				rng := rand.New(rand.NewPCG(8, uint64(every+alike)))
				for range series {
					p := &path{rng: rng, kind: kind, correlated: alike, every: every,
						fallen: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Add(80 * every)}
					if delay, ok := p.delay(t); ok {
						delays = append(delays, float64(delay))
					}
				}
				t.Logf("%s every %v alike over %v: %d of %d, median %v", kind, every, alike, len(delays), series,
					stats.Median(delays))
				if len(delays) < series*85/100 || stats.Median(delays) > 9 {
					t.Errorf("%s every %v alike over %v: a fall to 70 %% is seen in %d of %d, after %v results", kind, every, alike,
						len(delays), series, stats.Median(delays))
				}
			}
		}
	}
}

// TestTrack_Unhurried: without retests, visits alone detect a drop to 70 % after at most 16 results in the median,
// with no more false alarms.
func TestTrack_Unhurried(t *testing.T) {
	const every = 6 * time.Hour
	for _, kind := range kinds {
		rng := rand.New(rand.NewPCG(16, 6))
		results, changed, dips := 0, 0, 0
		for range 25 {
			follow(&path{rng: rng, kind: kind, correlated: 2 * time.Hour, every: every, unhurried: true}, 400,
				func(_ *Track, _ Result, e Event) bool {
					results++
					switch e {
					case Changed:
						changed++
					case Dipped:
						dips++
					}
					return false
				})
		}
		if float64(changed) > 0.001*float64(results) || float64(dips) > 0.01*float64(results) {
			t.Errorf("%s: of %d results %d lead to a change and %d to a dip", kind, results, changed, dips)
		}
		var delays []float64
		const series = 41
		for range series {
			p := &path{rng: rng, kind: kind, correlated: 2 * time.Hour, every: every, unhurried: true,
				fallen: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Add(80 * every)}
			n := 0
			follow(p, 160, func(track *Track, r Result, e Event) bool {
				if r.At.Before(p.fallen) {
					return false
				}
				n++
				if e == Changed && track.Shift.After < track.Shift.Before {
					delays = append(delays, float64(n))
					return true
				}
				return false
			})
		}
		t.Logf("%s: %d results, %d changed, %d dips; a fall is seen in %d of %d, after %v", kind, results, changed,
			dips, len(delays), series, stats.Median(delays))
		if len(delays) < series*85/100 || stats.Median(delays) > 16 {
			t.Errorf("%s: a fall to 70 %% is seen in %d of %d, after %v results", kind, len(delays), series,
				stats.Median(delays))
		}
	}
}

// delay returns the number of results from the drop to its report.
func (p *path) delay(t *testing.T) (results int, reported bool) {
	var confirmed []time.Time // scheduled visits since the newest dip
	follow(p, 160, func(track *Track, r Result, e Event) bool {
		if !r.Retest {
			confirmed = append(confirmed, r.At)
		}
		if e == Dipped {
			confirmed = nil
		}
		if r.At.Before(p.fallen) {
			return false
		}
		results++
		switch e {
		case Dipped:
			if took := r.At.Sub(track.Since); took > 30*time.Minute {
				t.Errorf("%s: a dip is reported after %v", p.kind, took)
			}
		case Changed:
			if len(confirmed) < 2 || confirmed[len(confirmed)-1].Sub(confirmed[0]) < 2*time.Hour {
				t.Errorf("%s: a change is reported after visits at %v", p.kind, confirmed)
			}
			reported = track.Shift.After < track.Shift.Before
		}
		return reported
	})
	return results, reported
}
