//go:build linux

package hostile

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// TestHostileFarEnds tries each of them; a command that still waits after a moment is interrupted.
func TestHostileFarEnds(t *testing.T) {
	t.Parallel()
	t.Logf("%d commands", harness.TryHostileCases(t, false, time.Second))
}
