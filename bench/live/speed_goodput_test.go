//go:build linux

package live

import (
	"fmt"
	"math"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab/stalltest"
)

// TestNdt7_CountsOnlyBytesOfTheTest guards against a fault that a slow line shows: bytes that arrived while our client
// probed the idle path were counted as if they had arrived during the test.
func TestNdt7_CountsOnlyBytesOfTheTest(t *testing.T) {
	t.Parallel()
	stalltest.Undisturbed(t, func() error {
		s := harness.NewSpeedLab(t, "rate=1mbit,rtt=20ms")
		defer s.Close()
		ratios := map[string]float64{}
		s.CompareNDT7(t, ratios)
		for way, ratio := range ratios {
			if math.Abs(ratio-1) > 0.03 {
				return fmt.Errorf("%s: %.3f of what the link carried in the same seconds", way, ratio)
			}
		}
		return nil
	})
}
