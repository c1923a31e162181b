//go:build linux

package interop

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// Who ends a timed test leaves what is on its way to be read.
func TestTimedTestsEndCleanly(t *testing.T) {
	t.Parallel()
	if runs, failures := harness.RunTimedEnds(t, 2, 8); len(failures) > 0 {
		t.Errorf("%d of %d: %s", len(failures), runs, strings.Join(failures, "; "))
	}
}
