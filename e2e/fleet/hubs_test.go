//go:build linux

package fleet

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// TestFleet_HubMoves moves a fleet from one hub to a second on the same database, and to a third that has a backup of
// it and the key file. The agents follow. Other programs verify the hub by ca.pem. A host behind an MTU black hole, and
// an agent whose hub is gone, say so.
func TestFleet_HubMoves(t *testing.T) {
	if !alone(t, testenv.Curl) {
		return
	}
	f := newFleet(t, 1, faultMesh, nil)
	f.command("ip", "addr", "add", "10.77.0.2/16", "dev", "br0")
	f.awaitLine("h0", "connected")
	state := filepath.Join(f.dir, "hub", "hub")
	code := f.command("curl", "-sS", "--cacert", filepath.Join(state, "ca.pem"), "-o", "/dev/null", "-w", "%{http_code}",
		"https://10.77.0.1:8443/api/v1/fleet/grid")
	if code != "401" {
		t.Errorf("curl: %s", code)
	}
	f.joinOverBlackHole()

	second := f.newHub("hub2", "10.77.0.2", f.env)
	f.begin(second)
	f.awaitFile(filepath.Join(f.dir, "h0", "agent", "agent.json"), "https://10.77.0.2:8443")
	f.expectNew("connected", func() { f.kill(f.center) })

	third := filepath.Join(f.dir, "moved", "hub")
	if err := os.MkdirAll(third, 0o700); err != nil {
		t.Fatal(err)
	}
	f.ask("backup", filepath.Join(third, "history.db"))
	f.command("cp", filepath.Join(state, "ca.key"), third)
	f.center = f.newHub("hub3", "10.77.0.1", append(os.Environ(), "FULLPIPE_STATE="+filepath.Dir(third)))
	f.expectNew("connected", func() {
		f.kill(second)
		f.begin(f.center)
	})

	f.expectNew("lost", func() { f.kill(f.center) })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		said := slices.ContainsFunc(f.events(), func(l agentLine) bool {
			return l.Event == "lost" && strings.Contains(l.Detail, "10.77.0.1:8443: ") &&
				strings.Contains(l.Detail, "connection refused")
		})
		if said {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the agent does not say why it has no hub: %+v", f.events())
		}
	}
}

// awaitFile waits until a file has a text.
func (f *fleet) awaitFile(name, want string) {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		text, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(text), want) {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%s has no %s: %s, %v", name, want, text, err)
		}
	}
}

// expectNew waits until h0 prints an event after a change.
func (f *fleet) expectNew(event string, change func()) {
	f.t.Helper()
	f.mu.Lock()
	f.lines = nil
	f.mu.Unlock()
	change()
	f.awaitLine("h0", event)
}

// joinOverBlackHole lets a host join whose packets of more than 1300 bytes are dropped without a word, both ways.
func (f *fleet) joinOverBlackHole() {
	f.t.Helper()
	f.addHost("hole", "10.77.2.1/16")
	f.command("ip", "link", "set", "vhole", "mtu", "1300")
	f.command("ip", "link", "set", "br0", "mtu", "1500") // pinned: it would follow its ports
	f.command("ip", "link", "set", "br0", "gso_max_segs", "1")
	f.command("ip", "-n", "hole", "link", "set", "eth0", "gso_max_segs", "1")
	cmd := exec.Command("ip", "netns", "exec", "hole", f.program, "agent", "--name", "hole", "--join", f.join)
	cmd.Env = append(os.Environ(), "FULLPIPE_STATE="+filepath.Join(f.dir, "hole"))
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "MTU black hole") {
		f.t.Errorf("a join over an MTU black hole: %v: %s", err, out)
	}
}
