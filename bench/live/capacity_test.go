//go:build linux

package live

import (
	"fmt"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab/stalltest"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
)

// TestCapacityByFeedbackInTheLab checks the bounds that also apply on a busy machine: never more than the link
// carries, and not far less. The bank has the figures.
func TestCapacityByFeedbackInTheLab(t *testing.T) {
	stalltest.Undisturbed(t, func() error {
		for _, d := range harness.MeasureCapacity(t, "rate=10mbit,rtt=20ms", "4s") {
			if d.Method != printed.ByFeedback || d.AtLeast || d.CapacityBps > 10.3e6 || d.CapacityBps < 8e6 {
				return fmt.Errorf("%s: %.4g Mbit/s, at least: %v, by %s", d.Direction, d.CapacityBps/1e6, d.AtLeast, d.Method)
			}
		}
		return nil
	})
}
