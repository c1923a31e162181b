//go:build linux

package pages

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// TestKilledPageKeepsConfirmedChanges kills ui while labels are set and while it tests a path. The confirmed labels
// are there, and the test that ended with ui is there once or not at all.
func TestKilledPageKeepsConfirmedChanges(t *testing.T) {
	t.Parallel()
	k := harness.NewSharedHistory(t, "")
	k.Run(0, "measure FAR -t 100ms --json")
	id, key := "", ""
	for _, r := range k.Runs() {
		id, key = r.ID, r.PathKey
	}
	acknowledged := map[string]bool{}
	for round := range 3 {
		ui := runUI(t, k.Program, k.Env)
		v := ui.opened(t)
		if status, body := v.ask("POST", "/api/v1/paths/"+key+"/retest"); status != 200 && status != 501 {
			t.Fatalf("%d: %s", status, body)
		}
		k.Started++
		put := make(chan string)
		go func() {
			defer close(put)
			for n := 0; ; n++ {
				name := fmt.Sprintf("n%d-%d", round, n)
				if status, _ := v.ask("PUT", "/api/v1/runs/"+id+"/labels/"+name+"?value=x"); status != 200 {
					return
				}
				put <- name
			}
		}()
		for name := range put {
			if acknowledged[name] = true; len(acknowledged) == 8*(round+1) {
				ui.cmd.Process.Kill()
			}
		}
		ui.cmd.Wait()
		ui.awaitTests(t)
	}
	runs := k.Runs()
	for name := range acknowledged {
		if runs[id].Labels[name] != "x" {
			t.Errorf("the label %s is lost", name)
		}
	}
	k.Check()
}

// awaitTests waits for the tests that a killed program leaves: they still write to the history.
func (ui *servedUI) awaitTests(t *testing.T) {
	t.Helper()
	for began := time.Now(); syscall.Kill(-ui.cmd.Process.Pid, 0) == nil; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("a test of a killed program does not end")
		}
	}
}
