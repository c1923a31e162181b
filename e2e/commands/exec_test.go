//go:build linux

package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestExecInTheLab runs an unmodified program that makes its buffers too small at both ends, iperf3 -w 16K: first
// only observed, then with its buffer sizes ignored. The account names the buffers as the limiter first, and then the
// link.
func TestExecInTheLab(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.Root, testenv.Iperf3)
	program := harness.Program(t)
	l, _ := harness.StartLab(t, "rate=20mbit,rtt=50ms,stack=linux-6.18")
	account := filepath.Join(t.TempDir(), "account.json")
	run := func(port string, flags ...string) printed.Direction {
		t.Helper()
		steered := append([]string{program, "exec", "--report", account}, flags...)
		server := append(append([]string{program, "exec", "--report", os.DevNull}, flags...), "--", "iperf3", "-s", "-1",
			"-p", port)
		far, err := l.Far.Start(lab.Command{Args: server, Stderr: os.Stderr})
		if err != nil {
			t.Fatal(err)
		}
		harness.AwaitPort(t, l, port)
		client := append(steered, "--", "iperf3", "-c", l.Far.Addr.String(), "-p", port, "-w", "16K", "-t", "3")
		if out, err := l.Near.Output(client...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if status, err := far.Wait(); err != nil || status != 0 {
			t.Fatalf("the server ended with %d, %v", status, err)
		}
		return heaviestUp(t, account)
	}
	watched := run("5301")
	// Both buffers are 16 KiB, so which of the two limits may stay open.
	named := watched.Candidates
	if watched.Limiter != verdict.Mixed {
		named = []verdict.Name{watched.Limiter}
	}
	if len(named) == 0 || slices.ContainsFunc(named, func(n verdict.Name) bool {
		return n != verdict.ReceiverWindow &&
			n != verdict.SendBuffer
	}) {
		t.Errorf("with 16 KiB buffers: %s, %v", text.Verdict(&watched), watched.Evidence)
	}
	ignored := run("5302", "--ignore-program-buffers")
	if !ignored.Windows.SendBuffer.Automatic || ignored.Limiter == "receiver-window" || ignored.Limiter == "send-buffer" {
		t.Errorf("with automatic buffers: %s, %+v", text.Verdict(&ignored), ignored.Windows.SendBuffer)
	}
	if *ignored.GoodputBps < 2**watched.GoodputBps {
		t.Errorf("%.3g bit/s with its own buffers, %.3g without", *watched.GoodputBps, *ignored.GoodputBps)
	}
}

// heaviestUp is the direction of an account that sent most.
func heaviestUp(t *testing.T, account string) (best printed.Direction) {
	t.Helper()
	text, err := os.ReadFile(account)
	if err != nil {
		t.Fatal(err)
	}
	var doc printed.Exec
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for _, c := range doc.Connections {
		for _, d := range c.Directions {
			if d.Direction == "up" && d.Bytes != nil && (best.Bytes == nil || *d.Bytes > *best.Bytes) {
				best = d
			}
		}
	}
	if best.Bytes == nil {
		t.Fatalf("nothing was sent: %s", text)
	}
	return best
}
