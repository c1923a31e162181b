//go:build linux

package interop

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// TestTimedTestsEndCleanly checks that the data in flight at the end of a timed test is still read.
func TestTimedTestsEndCleanly(t *testing.T) {
	t.Parallel()
	if runs, failures := harness.RunTimedEnds(t, 2, 8); len(failures) > 0 {
		t.Errorf("%d of %d: %s", len(failures), runs, strings.Join(failures, "; "))
	}
}
