//go:build linux

package hostile

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// keyed are the ways of clients with the key to use a server; FAR is replaced by its address.
var keyed = []string{"measure fullpipe://FAR -t 300ms -d up --write-rate 10mbit",
	"measure fullpipe://FAR -t 300ms -d down --write-rate 10mbit",
	"measure fullpipe://FAR -t 300ms -d up --write-rate 10mbit --receive-buffer 16k",
	"measure fullpipe://FAR -t 300ms --bidir --write-rate 10mbit",
	"measure fullpipe://FAR -t 300ms -d up --udp --rate 1mbit",
	"measure fullpipe://FAR -t 300ms -d down --udp --rate 1mbit"}

// TestHostileStrangers plays all strangers of the corpus at one server, each of them some at a time, and greetings
// over UDP, while clients with the key come from the same address. Each client with the key is served, no stranger is
// admitted, and the server keeps no state of strangers. The deadlines only end a test that hangs.
func TestHostileStrangers(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	ways := 0
	for _, kind := range harness.HostileCases(t) {
		if kind == "stranger" {
			ways++
		}
	}
	s := newSite(t)
	s.honest(t) // opens all descriptors that stay open
	before := openFiles(t, s.pid)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	var coming sync.WaitGroup
	n, made := 12*ways, 0
	coming.Go(func() {
		out, err := exec.CommandContext(ctx, harness.HostileProgram(t), "strangers", s.address, fmt.Sprint(n),
			fmt.Sprint(4*ways),
			"2s").Output()
		if _, serr := fmt.Sscan(string(out), &made); err != nil || serr != nil {
			t.Errorf("strangers: %v, %v: %s", err, serr, out)
		}
	})
	const each, atOnce = 2, 3
	lines := slices.Repeat(keyed, each)
	sessions := 1 + len(lines) + each // --bidir has two
	next := make(chan string)
	for range atOnce {
		coming.Go(func() {
			for line := range next {
				args := strings.Fields(strings.Replace(line, "FAR", s.address, 1))
				client := exec.CommandContext(ctx, program, append(args, "--json")...)
				client.Env = append(os.Environ(), "FULLPIPE_KEY="+s.key.String(), "XDG_STATE_HOME="+t.TempDir())
				if out, err := client.Output(); err != nil {
					t.Errorf("%s: %v: %s", line, err, out)
				}
			}
		})
	}
	for _, line := range lines {
		next <- line
	}
	close(next)
	coming.Wait()
	if made < n-n/20 {
		t.Errorf("only %d of %d strangers got a connection", made, n)
	}
	if got, want := s.admittedAfter(t, sessions), sessions; got != want {
		t.Errorf("%d sessions were admitted; %d had the key", got, want)
	}
	for now := before; ; time.Sleep(20 * time.Millisecond) {
		if now = openFiles(t, s.pid); now <= before+16 { // the listeners of small windows stay: see server.windows
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("%d descriptors, %d before", now, before)
		}
	}
	if stacks := s.stacks(t); !strings.Contains(stacks, "server.(*Server).Serve") {
		t.Errorf("no stacks: %s", stacks)
	} else if n := strings.Count(stacks, "server.(*Server).admit("); n > 0 {
		t.Errorf("%d connections are still served: %s", n, stacks)
	}
}

// stacks ends the server and returns the stack of each of its goroutines.
func (s *site) stacks(t *testing.T) string {
	t.Helper()
	if err := s.server.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	s.server.Wait()
	return s.errs.String()
}
