//go:build linux

package live

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab/stalltest"
)

func TestTuneApplyKeepsAGainAndUndoTakesItBack(t *testing.T) {
	t.Parallel()
	stalltest.Undisturbed(t, func() error {
		a := harness.TuneApplyUndo(t, "65536", "6291456", "").Directions[0].Applied
		return harness.ErrorUnless(a != nil && a.Kept && a.Gain.Factor > 1.5, "a send buffer of 64 KiB for 150 kB: %+v", a)
	})
}
