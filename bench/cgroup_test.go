//go:build linux

package bench

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// slowedTo is a group that has a share of one processor.
func slowedTo(t *testing.T, share float64) *harness.CPUGroup {
	t.Helper()
	g := harness.NewCPUGroup(t)
	if err := g.Limit(share, 100*time.Millisecond); err != nil {
		t.Skipf("no share of a processor: %v", err)
	}
	return g
}
