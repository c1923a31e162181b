//go:build linux

package live

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab/stalltest"
)

// TestCause creates each cause once on kernel TCP, captured at both ends and in the middle. A shared machine disturbs
// measurements, so only a wrong verdict with high confidence fails.
func TestCause(t *testing.T) {
	for _, c := range harness.Causes() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			stalltest.Undisturbed(t, func() error { return c.Verify(t) })
		})
	}
}
