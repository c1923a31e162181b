package probe

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Whatever the path's delays, clocks of one speed show no drift; what is shown is never
// more than there is, and most of it where it is much more than the delays.
func TestDrift(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 0))
	for _, rate := range []float64{0, 200e-6, 0.01, -0.01, 0.2, -0.2} {
		for range 50 {
			var d drift
			offset := time.Duration(r.IntN(1e9))
			for at := time.Duration(0); at < 10*time.Second; at += 100 * time.Millisecond {
				there := time.Duration(r.IntN(30e6))
				back := time.Duration(r.IntN(30e6))
				read := at + there
				d.add(at, read+back, offset+time.Duration(float64(read)*(1+rate)))
			}
			// The span between two answers is known to a round trip.
			if most := math.Abs(rate) * 1.06; math.Abs(d.shown) > most || rate*d.shown < 0 {
				t.Fatalf("clocks that differ by %v: %v shown", rate, d.shown)
			}
			if math.Abs(rate) >= 0.01 && math.Abs(d.shown) < math.Abs(rate)/2 {
				t.Errorf("clocks that differ by %v: only %v shown", rate, d.shown)
			}
		}
	}
}

func TestDriftKeepsABound(t *testing.T) {
	var d drift
	for i := range 10 * mostOffsets {
		at := time.Duration(i) * 100 * time.Millisecond
		d.add(at, at+time.Millisecond, at)
	}
	if len(d.all) > mostOffsets || d.shown != 0 {
		t.Errorf("%d kept, %v shown", len(d.all), d.shown)
	}
}
