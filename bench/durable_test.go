//go:build linux

package bench

import (
	"bytes"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
)

// TestBankKilledWatch kills three `watch --record` that share a history in their second minute. The first minute of
// each is there, once, in a record that is marked as cut off. It takes about a minute.
func TestBankKilledWatch(t *testing.T) {
	bankOnly(t)
	const watches = 3
	k := harness.NewSharedHistory(t, "")
	ended := make(chan string, watches)
	var all []*exec.Cmd
	for range watches {
		watch := exec.Command(k.Program, "watch", "--record", "--quiet", "--json")
		watch.Env = k.Env
		var errs bytes.Buffer
		watch.Stderr = &errs
		if err := watch.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, watch)
		k.Started++
		go func() { ended <- fmt.Sprint(watch.Wait(), ": ", errs.String()) }()
		t.Cleanup(func() { watch.Process.Kill() })
	}
	for deadline := time.Now().Add(5 * time.Minute); len(k.Runs()) < watches; {
		select {
		case why := <-ended:
			t.Fatalf("a watch ended: %s", why)
		case <-time.After(time.Second):
		}
		if time.Now().After(deadline) {
			t.Fatal("not every watch has kept a minute in five")
		}
	}
	for _, watch := range all {
		watch.Process.Kill()
	}
	for range all {
		<-ended
	}
	cut := 0
	for id, r := range k.Runs() {
		k.Reported[id] = true
		if r.Kind == "watch" && r.Outcome == printed.Interrupted {
			cut++
		}
	}
	k.Check()
	record(t, bankRow{Section: "History", Case: "three watch --record with one history, killed in their second minute",
		Claim: "the minutes that were over are kept, once", Measured: fmt.Sprintf("%d records, %d of them cut off",
			len(k.Reported), cut), Spread: "3 watches", Verdict: passed(len(k.Reported) == watches && cut == watches),
		Command: "make bank RUN=TestBankKilledWatch"})
}
