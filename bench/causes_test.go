//go:build linux

package bench

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// randomPoint draws from a span, evenly in the logarithm.
func randomPoint(r *rand.Rand, s span) harness.PathPoint {
	between := func(a, b float64) float64 { return a * math.Pow(b/a, r.Float64()) }
	return harness.PathPoint{RateBps: math.Round(between(s.least, s.most)/1e4) * 1e4,
		RTT: time.Duration(between(s.shortest.Seconds(), s.widest.Seconds())*1e6) * time.Microsecond}
}
