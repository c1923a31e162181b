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

// TestFleet_FullDisk fills the disk of a hub, and kills the hub. A hub with a full disk reports it, and its commands
// read; agents keep their results. A start on a full disk fails with the reason. With room the hub starts, and gets
// every result.
func TestFleet_FullDisk(t *testing.T) {
	if !alone(t) {
		return
	}
	f := newFleet(t, 2, faultMesh, nil)
	f.awaitGrid(2)
	f.kill(f.center)
	state := f.dir + "/hub"
	f.command("cp", "-a", state, state+".was")
	f.command("mount", "-t", "tmpfs", "-o", "size=16m", "none", state)
	t.Cleanup(func() { f.command("umount", "--lazy", state) })
	f.command("cp", "-a", state+".was/.", state)
	f.expectNew("connected", func() { f.begin(f.center) })
	f.awaitLine("h1", "connected")

	f.ask("test", "h0", "h1")
	f.awaitLine("h0", "order", "h1", "order") // its result finds no room
	ballast := filepath.Join(state, "ballast")
	_ = exec.Command("dd", "if=/dev/zero", "of="+ballast, "bs=4k").Run() // it ends when the disk is full
	for deadline := time.Now().Add(time.Minute); !strings.Contains(f.hubLog(), "disk full"); {
		time.Sleep(100 * time.Millisecond)
		if time.Now().After(deadline) {
			t.Fatalf("the hub does not say that its disk is full: %s", f.hubLog())
		}
	}
	if grid := f.ask("grid"); !strings.Contains(grid, "bit/s") {
		t.Errorf("the grid with a full disk: %s", grid)
	}
	f.kill(f.center)
	out, err := f.center.start().CombinedOutput()
	if err == nil || !strings.Contains(string(out), "full") {
		t.Errorf("a start on a full disk: %v: %s", err, out)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	f.begin(f.center)
	f.ask("mesh", "apply", f.noMesh())
	f.drain()
	if made := f.check(nil); made == 0 {
		t.Error("no run was made: the test shows nothing")
	}
}

// hubLog returns what the hub printed.
func (f *fleet) hubLog() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hubLines.String()
}
