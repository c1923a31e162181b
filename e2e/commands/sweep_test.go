//go:build linux

package commands

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

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
			small.ReceiveBuffer.Effective == 0 || large.Predicted {
			t.Errorf("8 KiB at 40 ms: %+v\n256 KiB: %+v", small, large)
		}
	}
}

// TestKilledSweepGoesOn kills the whole sweep again and again. Completed runs stay, and the result is that of a sweep
// that was left alone.
func TestKilledSweepGoesOn(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "journal")
	args := []string{"--send-buffers", "automatic", "--receive-buffers", "8K,16K,64K", "--time", "200ms", "--repeats", "2",
		"--resume", journal}
	lines := func() int {
		text, err := os.ReadFile(journal)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return bytes.Count(text, []byte(`"run":`))
	}
	kept := 0
	for range 2 {
		cmd := harness.SweepCommand(t, "rate=10mbit,rtt=20ms", args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		for lines() < kept+2 {
			select {
			case <-ended:
				t.Fatalf("it ended after %d runs", lines())
			case <-t.Context().Done():
				t.Fatal(t.Context().Err())
			case <-time.After(5 * time.Millisecond):
			}
		}
		cmd.Process.Signal(syscall.SIGKILL)
		<-ended
		kept = lines()
		if kept >= 6 {
			break // all runs were made before the kill; the code below must find them complete
		}
	}
	doc := harness.RunSweep(t, harness.SweepCommand(t, "rate=10mbit,rtt=20ms", args...))
	if !doc.Complete || lines() < 6 {
		t.Errorf("%d runs kept: %+v", lines(), doc)
	}
	for _, c := range doc.Cells {
		if len(c.Runs) != 2 {
			t.Errorf("%d runs of %+v", len(c.Runs), c)
		}
	}
}
