//go:build linux

package commands

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// TestSweepOfALab measures four cells in both directions on the real kernel: a window of 8 KiB gives a fraction of
// one that fills the path, in either direction. Its limiter is the bank's: on a busy machine the programs wait too.
func TestSweepOfALab(t *testing.T) {
	t.Parallel()
	doc := harness.RunSweep(t, harness.SweepCommand(t, "rate=10mbit,rtt=40ms", "--send-buffers", "automatic",
		"--receive-buffers",
		"8K,256K", "--direction", "both", "--time", "500ms", "--repeats", "1"))
	if len(doc.Cells) != 4 || !doc.Complete || len(doc.Paths) != 2 {
		t.Fatalf("%+v", doc)
	}
	for i := 0; i < 4; i += 2 {
		small, large := doc.Cells[i], doc.Cells[i+1]
		if small.Goodput <= 0 || small.Goodput > large.Goodput/2 || small.Limiter == "" ||
			small.ReceiveBuffer.Effective == 0 {
			t.Errorf("8 KiB at 40 ms: %+v\n256 KiB: %+v", small, large)
		}
	}
}
