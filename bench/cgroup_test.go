//go:build linux

package bench

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// slowedTo returns a control group with a share of one processor.
func slowedTo(t *testing.T, share float64) *harness.CPUGroup {
	t.Helper()
	testenv.Need(t, testenv.CPUQuota)
	g := harness.NewCPUGroup(t)
	if err := g.Limit(share, 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	return g
}
