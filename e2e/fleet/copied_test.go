//go:build linux

package fleet

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFleet_CopiedAgent starts a second agent in a state directory in use, and one on another host in a copy of it. The
// second ends at once. The copy is refused while the first is there, keeps no connection and causes one event; it takes
// the first one's place when that is killed, and the first one gets it back when the copy's host is cut off.
func TestFleet_CopiedAgent(t *testing.T) {
	if !alone(t) {
		return
	}
	f := newFleet(t, 1, "[limits]\nmost-full = 0.6\n", nil)
	f.awaitLine("h0", "connected")
	first := f.agents[0]

	second := exec.Command("ip", "netns", "exec", "h0", f.program, "agent")
	second.Env = append(os.Environ(), "FULLPIPE_STATE="+filepath.Join(f.dir, "h0"))
	began := time.Now()
	out, err := second.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "is the state directory of an agent that runs") {
		t.Errorf("a second agent in the directory: %v: %s", err, out)
	}
	t.Logf("a second agent in the directory ended after %v", time.Since(began))

	f.command("cp", "-a", filepath.Join(f.dir, "h0"), filepath.Join(f.dir, "copy"))
	f.addHost("copy", "10.77.2.1/16")
	copied := f.addAgent("copy")
	f.timed("the copy is refused", "copy", "refused", func() { f.begin(copied) })
	f.awaitNoConnection("10.77.2.1")
	time.Sleep(12 * time.Second) // it tries again twice
	if n := f.count("hub", "error"); n != 1 {
		t.Errorf("%d events about the copy: %+v", n, f.events())
	}
	if n := f.count("copy", "refused"); n != 1 {
		t.Errorf("the copy says %d times that it is refused: %+v", n, f.events())
	}
	if n := f.count("h0", "lost"); n != 0 {
		t.Errorf("the first agent lost its hub %d times: %+v", n, f.events())
	}
	f.timed("the copy takes over", "copy", "connected", func() { f.kill(first) })
	f.timed("the first is refused", "h0", "refused", func() { f.begin(first) })
	f.timed("the first takes over", "h0", "connected", func() { f.command("ip", "link", "set", "vcopy", "down") })
}

// timed waits until an agent prints an event after a change, and logs the time.
func (f *fleet) timed(name, agent, event string, change func()) {
	f.t.Helper()
	f.mu.Lock()
	for i := range f.lines {
		if f.lines[i].agent == agent && f.lines[i].Event == event {
			f.lines[i].Event += " before"
		}
	}
	f.mu.Unlock()
	change()
	began := time.Now()
	f.awaitLine(agent, event)
	f.t.Logf("%s: %v", name, time.Since(began).Round(100*time.Millisecond))
}

// count returns the number of lines with an event of an agent.
func (f *fleet) count(agent, event string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lines {
		if l.agent == agent && l.Event == event {
			n++
		}
	}
	return n
}

// awaitNoConnection waits until the hub has no connection with an address.
func (f *fleet) awaitNoConnection(address string) {
	f.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		out := f.command("ss", "-Htn", "state", "established", "sport", "=", ":8443", "dst", address)
		if strings.TrimSpace(out) == "" {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the hub keeps a connection: %s", out)
		}
	}
}
