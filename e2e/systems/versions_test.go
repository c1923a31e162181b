//go:build linux

package systems

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// oldWire is the wire protocol of commit d052a4f as a module of its own: internal/probe, server, iperf3 and their
// imports, with a far end and a client around them (cmd/wire). Programs of that version are in use, because fleets
// are updated in steps.
const oldWire = "testdata/wire-d052a4f.tar.gz"

// buildOldWire returns the path of the program in oldWire.
func buildOldWire(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-xzf", oldWire, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("unpack %s: %v: %s", oldWire, err, out)
	}
	program := filepath.Join(dir, "wire")
	build := exec.Command("go", "build", "-o", program, "./cmd/wire")
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v: %s", oldWire, err, out)
	}
	return program
}

func TestVersions_NewClientMeasuresWithOldServer(t *testing.T) {
	t.Parallel()
	today := harness.Program(t)
	address, key := harness.StartFarEnd(t, buildOldWire(t), "serve")
	for _, args := range []string{"-d up", "-d down", "-d up --parallel 3", "-d down --receive-buffer 32KiB",
		"-d up --receive-buffer 32KiB", "--bidir", "--udp --rate 5mbit -d up", "--udp --rate 5mbit -d down"} {
		cmd := exec.CommandContext(t.Context(), today, append([]string{"measure", "fullpipe://" + address, "--json",
			"-t", "300ms"}, strings.Fields(args)...)...)
		cmd.Env = append(os.Environ(), "FULLPIPE_KEY="+key)
		cmd.WaitDelay = time.Second
		out, err := cmd.Output()
		var doc struct {
			Directions []struct {
				GoodputBps float64 `json:"goodput_bps"`
				Limiter    string
			}
		}
		if err != nil || json.Unmarshal(out, &doc) != nil || len(doc.Directions) == 0 {
			t.Errorf("%s: %v: %s", args, err, out)
			continue
		}
		for _, d := range doc.Directions {
			if d.GoodputBps <= 0 || d.Limiter == "" && !strings.Contains(args, "udp") {
				t.Errorf("%s: %+v", args, d)
			}
		}
	}
	out, err := exec.CommandContext(t.Context(), today, "measure", "fullpipe://"+address, "-t", "100ms", "--key",
		strings.Repeat("ab", 32)).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another key") {
		t.Errorf("with another key: %v: %s", err, out)
	}
}

func TestVersions_OldClientMeasuresWithNewServer(t *testing.T) {
	t.Parallel()
	old := buildOldWire(t)
	address, key := harness.StartServe(t, harness.Program(t))
	for args, want := range map[string]string{"": "up", "-down": "down", "-both": "up down", "-streams 3": "up",
		"-receive-buffer 32768": "up", "-down -receive-buffer 32768": "down", "-udp 5e6": "up",
		"-udp 5e6 -down": "down"} {
		out, err := exec.CommandContext(t.Context(), old, append([]string{"measure", address, key},
			strings.Fields(args)...)...).CombinedOutput()
		var arrived map[string]int64
		if err != nil || json.Unmarshal(out, &arrived) != nil {
			t.Errorf("%q: %v: %s", args, err, out)
			continue
		}
		for direction := range strings.FieldsSeq(want) {
			if arrived[direction] <= 0 {
				t.Errorf("%q: nothing arrived %s: %s", args, direction, out)
			}
		}
	}
	out, err := exec.CommandContext(t.Context(), old, "measure", address, strings.Repeat("ab", 32)).CombinedOutput()
	if err == nil {
		t.Errorf("with another key: %s", out)
	}
}
