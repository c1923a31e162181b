//go:build linux

package hostile

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// strangers makes n hostile connections to a server, atOnce at a time, each kept for hold, and returns the number of
// connections made.
func strangers(t *testing.T, address string, n, atOnce int, hold time.Duration) (made int) {
	out, err := exec.CommandContext(t.Context(), harness.HostileProgram(t), "strangers", address, fmt.Sprint(n),
		fmt.Sprint(atOnce),
		hold.String()).Output()
	if _, serr := fmt.Sscan(string(out), &made); err != nil || serr != nil {
		t.Errorf("strangers: %v, %v: %s", err, serr, out)
	}
	return made
}

// openFiles returns the number of a process's open descriptors.
func openFiles(t *testing.T, pid int) int {
	t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatalf("the server has gone: %v", err)
	}
	return len(all)
}

// TestStrangersLeaveNothingBehind checks that a serving program completes a test among strangers, and has no more
// descriptors afterwards than before.
func TestStrangersLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	server := exec.Command(program, "serve", "--iperf3", "--listen", "127.0.0.1:0", "--json")
	server.Env = append(os.Environ(), "GODEBUG=")
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	lines := json.NewDecoder(out)
	var ready struct{ Listen, Key string }
	if err := lines.Decode(&ready); err != nil {
		t.Fatal(err)
	}
	go func() {
		for event := struct{}{}; lines.Decode(&event) == nil; {
		}
	}()
	key, err := probe.ParseKey(ready.Key)
	if err != nil {
		t.Fatal(err)
	}
	far, err := probe.Connect(t.Context(), ready.Listen, key)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	spec := transfer.Spec{Direction: transfer.Up, Bytes: 1 << 20, Program: transfer.Program{WriteBps: 8e6}}
	small := spec
	small.Bytes = 1000
	if _, err := transfer.Run(t.Context(), far, small, nil); err != nil { // opens all descriptors that stay open
		t.Fatal(err)
	}
	before := openFiles(t, server.Process.Pid)
	made := make(chan int)
	go func() { made <- strangers(t, ready.Listen, 320, 40, 50*time.Millisecond) }()
	result, err := transfer.Run(t.Context(), far, spec, nil)
	if err != nil {
		t.Errorf("the running test: %v", err)
	} else if span, ok := result.Received(); !ok || span.Bytes != spec.Bytes {
		t.Errorf("the running test moved %d bytes of %d", span.Bytes, spec.Bytes)
	}
	if n := <-made; n < 300 {
		t.Errorf("only %d of 320 strangers got a connection", n)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		now := openFiles(t, server.Process.Pid)
		if now <= before+16 { // the listeners of small windows stay: see server.windows
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d descriptors, %d before", now, before)
		}
	}
}
