package changepoint

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestWord_Stable(t *testing.T) {
	for text, want := range map[string]string{
		"aaab":      "",      // once may be a fault of the result
		"aaabb":     "a>b@4", // twice is not
		"aaabab":    "",      // each time once
		"aabb":      "",      // no old level yet
		"aaabbbbaa": "a>b@4 b>a@8",
		"aaa--b--b": "a>b@8", // - is not known
	} {
		var w Word
		at, got := time.Unix(0, 0), ""
		for i, r := range text {
			word := string(r)
			if word == "-" {
				word = ""
			}
			if before, ok := w.Add(at, word); ok {
				got += fmt.Sprintf(" %s>%s@%d", before, word, i)
			}
			at = at.Add(Soon)
		}
		if got != "" {
			got = got[1:]
		}
		if got != want {
			t.Errorf("%s: %q, not %q", text, got, want)
		}
	}
}

func TestAWordIsTestedAgain(t *testing.T) {
	var w Word
	at := time.Unix(0, 0)
	for range 3 {
		w.Add(at, "Linux 6.1")
	}
	if _, ok := w.Wants(); ok {
		t.Error("nothing is suspected")
	}
	w.Add(at, "Linux 6.18")
	if when, ok := w.Wants(); !ok || !when.Equal(at.Add(Soon)) {
		t.Errorf("%v, %v", when, ok)
	}
}

// TestWord_Wavering: at most 1 in 1,000 results reports a change while the limiter alternates, with or without
// correlation. A lasting change is reported.
func TestWord_Wavering(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		for _, alike := range []time.Duration{0, 10 * time.Minute, 2 * time.Hour} {
			for _, level := range []float64{0.43, 1.28, 1.75} { // a third of the time, a tenth, one in 25
				p := &path{rng: rand.New(rand.NewPCG(seed, uint64(alike))), correlated: alike}
				w := Word{Wavers: true}
				at, reported, results := time.Unix(0, 0), 0, 0
				say := func() (string, bool) {
					at = at.Add(time.Duration(p.rng.ExpFloat64() * float64(6*time.Hour)))
					p.measure(at)
					if p.slow > level {
						return w.Add(at, "congestion")
					}
					return w.Add(at, "bottleneck")
				}
				for ; results < 4000; results++ {
					if _, ok := say(); ok {
						reported++
					}
				}
				if reported > results/1000 {
					t.Errorf("above %v, correlated over %v: %d of %d results report a change", level, alike, reported, results)
				}
				n, ok := 0, false
				for was := ""; !ok && n < 40; n++ {
					at = at.Add(6 * time.Hour)
					was, ok = w.Add(at, "receiver-window")
					ok = ok && was == "bottleneck"
				}
				if !ok || n > 9 {
					t.Errorf("above %v: a lasting limiter change is reported after %d results, %v", level, n, ok)
				}
			}
		}
	}
}
