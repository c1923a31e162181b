//go:build linux

package live

import (
	"fmt"
	"math"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab/still"
)

// What had come while our client asked the idle path was counted as if the link had brought it in
// the test's time, which a slow line shows.
func TestNdt7CountsWhatPassed(t *testing.T) {
	t.Parallel()
	still.Undisturbed(t, func() error {
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
