package e2e

import (
	"os/exec"
	"testing"
	"time"
)

// TestMachineStoodStill has a child stop this program for a fifth of a second.
func TestMachineStoodStill(t *testing.T) {
	const stop = "kill -STOP $PPID; sleep 0.2; kill -CONT $PPID"
	before := stoodStill()
	if err := exec.Command("sh", "-c", stop).Run(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * canarySleep)
	if got := stoodStill().since(before); got.still < 150*time.Millisecond || got.still > got.span || !got.disturbs() {
		t.Errorf("%v of %v", got.still, got.span)
	}
}
