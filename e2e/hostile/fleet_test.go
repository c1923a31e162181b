//go:build linux

package hostile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// fleetSite is a hub with two honest agents.
type fleetSite struct {
	t    *testing.T
	dir  string
	join string
	hub  *exec.Cmd

	mu   sync.Mutex
	said bytes.Buffer // output of the hub and of the agents
}

// Write implements io.Writer for the programs' output.
func (f *fleetSite) Write(text []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.said.Write(text)
}

func (f *fleetSite) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.said.String()
}

func (f *fleetSite) start(program string, args ...string) *exec.Cmd {
	f.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "FULLPIPE_STATE="+filepath.Join(f.dir, args[len(args)-1]))
	cmd.Stdout = f
	cmd.Stderr = f
	harness.StartCommand(f.t, cmd)
	return cmd
}

// ask runs a command of the hub on its database.
func (f *fleetSite) ask(args ...string) string {
	f.t.Helper()
	cmd := exec.Command(harness.HubProgram(f.t), append(args, "--dir", filepath.Join(f.dir, "hub"))...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("fullpipe-hub %v: %v: %s", args, err, out)
	}
	return string(out)
}

func newFleetSite(t *testing.T) *fleetSite {
	t.Helper()
	f := &fleetSite{t: t, dir: t.TempDir()}
	mesh := filepath.Join(f.dir, "mesh.toml")
	text := "[task.t]\nbetween = [\"*\"]\nevery = \"1m\"\ntime = \"200ms\"\nmost = \"1MB\"\n"
	if err := os.WriteFile(mesh, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f.ask("mesh", "apply", mesh)
	f.hub = f.start(harness.HubProgram(t), "serve", "--listen", "127.0.0.1:0", "--page", "", "--dir",
		filepath.Join(f.dir, "hub"))
	for deadline := time.Now().Add(time.Minute); f.join == ""; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the hub is not ready: %s", f.text())
		}
		if _, rest, found := strings.Cut(f.text(), "FULLPIPE_JOIN="); found && strings.Contains(rest, "\n") {
			f.join, _, _ = strings.Cut(rest, " ")
		}
	}
	for _, name := range []string{"anna", "bert"} {
		f.start(harness.Program(t), "agent", "--join", f.join, "--listen", "127.0.0.1:0", "--address", "127.0.0.1", "--name",
			name)
	}
	return f
}

// honestRuns returns the number of results of the honest agents with each other.
func (f *fleetSite) honestRuns() (n int) {
	f.t.Helper()
	var doc struct{ Runs []struct{ Hosts [2]string } }
	if err := json.Unmarshal([]byte(f.ask("runs", "--json", "--state", "done", "--limit", "100000")), &doc); err != nil {
		f.t.Fatal(err)
	}
	for _, run := range doc.Runs {
		if slices.Contains(run.Hosts[:], "anna") && slices.Contains(run.Hosts[:], "bert") {
			n++
		}
	}
	return n
}

// await waits for more results of the honest agents than n, which they are asked for.
func (f *fleetSite) await(n int, when string) {
	f.t.Helper()
	f.ask("test", "anna", "bert")
	for deadline := time.Now().Add(2 * time.Minute); f.honestRuns() <= n; time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			f.t.Fatalf("%s: no new result of the honest agents in two minutes; the hub and agents said:\n%s", when, f.text())
		}
	}
}

// TestHostileAgents has all hostile agents of the corpus in one fleet, at the same time. No attack succeeds, honest
// agents go on measuring, and the output of the hub is harmless and bounded.
func TestHostileAgents(t *testing.T) {
	t.Parallel()
	f := newFleetSite(t)
	joined := func(name string) bool { return strings.Contains(f.ask("agents"), name) }
	for deadline := time.Now().Add(time.Minute); !joined("anna") || !joined("bert"); time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			t.Fatal(f.text())
		}
	}
	f.await(0, "before")
	var attacks sync.WaitGroup
	count := 0
	for name, kind := range harness.HostileCases(t) {
		if kind != "agent" {
			continue
		}
		count++
		attacks.Go(func() {
			out, err := exec.CommandContext(t.Context(), harness.HostileProgram(t), name, f.join).CombinedOutput()
			if err != nil {
				t.Errorf("%s did not take place: %v: %s", name, err, out)
			}
			if bytes.Contains(out, []byte("ADMITTED")) {
				t.Errorf("%s: %s", name, out)
			}
		})
	}
	f.await(f.honestRuns(), "during the attacks")
	attacks.Wait()
	f.await(f.honestRuns(), "after the attacks")
	var memory int64
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.hub.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(rest, &memory); err != nil || memory > 400<<10 {
		t.Errorf("the hub took %d KiB at most, %v", memory, err)
	}
	said := f.text()
	if lines := strings.Count(said, "\n"); lines > 2000 {
		t.Errorf("%d lines were logged", lines)
	}
	for what, text := range map[string]string{"the logs": said, "agents": f.ask("agents"), "grid": f.ask("grid"),
		"runs": f.ask("runs", "--limit", "1000"), "grid in JSON": f.ask("grid", "--json")} {
		if problem := harness.UnsafeOutput(text); problem != "" {
			t.Errorf("%s: %s", what, problem)
		}
		if len(text) > 1<<20 {
			t.Errorf("%s: %d bytes", what, len(text))
		}
	}
	t.Logf("%d attacks; the hub took %d MiB at most; %d results of the honest agents", count, memory>>10, f.honestRuns())
}
