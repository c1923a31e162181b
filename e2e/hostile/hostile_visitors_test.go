//go:build linux

package hostile

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// besieged is a program that serves pages, with its output.
type besieged struct {
	cmd     *exec.Cmd
	address string // HOST:PORT
	mu      sync.Mutex
	said    bytes.Buffer // guarded by mu
}

func (b *besieged) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.said.Write(text)
}

func (b *besieged) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.said.String()
}

// besiege starts a program and waits until it prints the address of its pages, as JSON.
func besiege(t *testing.T, args ...string) *besieged {
	t.Helper()
	b := &besieged{cmd: exec.Command(harness.Program(t), args...)}
	b.cmd.Env = append(os.Environ(), "FULLPIPE_HISTORY="+t.TempDir(), "FULLPIPE_CONFIG=")
	b.cmd.Stdout, b.cmd.Stderr = b, b
	harness.StartCommand(t, b.cmd)
	for deadline := time.Now().Add(time.Minute); b.address == ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%v does not begin: %s", args, b.text())
		}
		for _, part := range strings.Fields(b.text()) {
			if _, rest, found := strings.Cut(part, "http://"); found {
				b.address, _, _ = strings.Cut(strings.Trim(rest, `",}`), "/")
			}
		}
	}
	return b
}

// fromElsewhere sends a request from another address, because limits are by address.
var fromElsewhere = &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
	DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext}}

// TestHostileVisitors plays all visitors of the corpus at ui and at serve --web, each of them some at a time. A
// client from another address is served meanwhile. Afterwards the program has no more descriptors than before, uses
// little memory, and has printed no terminal control sequence.
func TestHostileVisitors(t *testing.T) {
	t.Parallel()
	ways := 0
	for _, kind := range harness.HostileCases(t) {
		if kind == "visitor" {
			ways++
		}
	}
	for _, c := range []struct {
		name   string
		args   []string
		status int // of an honest request
	}{
		{"serve", []string{"serve", "--json", "--listen", "127.0.0.1:0", "--web", "127.0.0.1:0"}, http.StatusOK},
		{"ui", []string{"ui", "--no-open"}, http.StatusUnauthorized},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := besiege(t, c.args...)
			honest := func() {
				t.Helper()
				answer, err := fromElsewhere.Get("http://" + b.address + "/test")
				if err != nil {
					t.Errorf("an honest request: %v", err)
					return
				}
				answer.Body.Close()
				if answer.StatusCode != c.status {
					t.Errorf("an honest request: %s", answer.Status)
				}
			}
			honest()
			before := openFiles(t, b.cmd.Process.Pid)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			over := make(chan struct{})
			made := 0
			n := 3 * ways
			go func() {
				defer close(over)
				out, err := exec.CommandContext(ctx, harness.HostileProgram(t), "visitors", b.address, fmt.Sprint(n), "48",
					"200ms").Output()
				if _, serr := fmt.Sscan(string(out), &made); err != nil || serr != nil {
					t.Errorf("visitors: %v, %v: %s", err, serr, out)
				}
			}()
			for coming := true; coming; {
				honest()
				select {
				case <-over:
					coming = false
				case <-time.After(100 * time.Millisecond):
				}
			}
			if made < n*9/10 {
				t.Errorf("only %d of %d visitors got a connection", made, n)
			}
			honest()
			for openFiles(t, b.cmd.Process.Pid) > before+8 { // tests that nobody reads end by their time
				if ctx.Err() != nil {
					t.Fatalf("%d descriptors, %d before", openFiles(t, b.cmd.Process.Pid), before)
				}
				time.Sleep(20 * time.Millisecond)
			}
			b.leaves(t)
		})
	}
}

// leaves ends the program and checks the requirements that every command must meet.
func (b *besieged) leaves(t *testing.T) {
	t.Helper()
	resident := peakMemory(t, b.cmd.Process.Pid)
	if err := b.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	b.cmd.Wait()
	said := b.text()
	if status := b.cmd.ProcessState.ExitCode(); status != 0 && status != 130 || strings.Contains(said, "goroutine ") ||
		strings.Contains(said, "panic") {
		t.Errorf("status %d: %s", status, said)
	}
	if problem := harness.UnsafeOutput(said); problem != "" {
		t.Error(problem)
	}
	if resident > 128<<10 {
		t.Errorf("%d MiB", resident>>10)
	}
}

// peakMemory returns the most memory that a process had, in KiB. Its resource usage would include the test's own: a
// child shares it until exec (exec_mmap, fs/exec.c).
func peakMemory(t *testing.T, pid int) (kib int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatalf("%v in %s", err, status)
	}
	return kib
}
