//go:build linux

package kernel

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestTuneOnTheRealKernel runs the whole loop in a lab: it has to end within its budget with a better window than a
// system with a maximum of 64 KB.
func TestTuneOnTheRealKernel(t *testing.T) {
	t.Parallel()
	site := harness.NewTuneSite(t, "rate=15mbit,rtt=120ms,stack=server-2012,app=cygwin")
	doc := site.Tune(t, transfer.Down, "--budget", "10s")
	if len(doc.Directions) != 1 {
		t.Fatalf("%+v", doc)
	}
	// On a busy machine it may stay undecided, but must not conclude that no change is needed.
	d := doc.Directions[0]
	if d.Verdict == search.NoChange || d.Chosen != nil && d.Chosen.Window < 65536 || d.Before.Median <= 0 {
		t.Errorf("64 KB at 120 ms allow 4 of 15 Mbit/s: %+v", d)
	}
}
