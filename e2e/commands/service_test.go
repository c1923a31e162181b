//go:build linux

package commands

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// The units that are shipped are ones that systemd understands word by word, and ones that
// it calls safe: those of serve and recheck, which need nothing, more than watch's, which sees
// all programs.
func TestServiceUnit(t *testing.T) {
	t.Parallel()
	analyze := testenv.Program(t, testenv.SystemdAnalyze)
	for name, exposure := range map[string]string{"fullpipe.service": "20", "fullpipe-watch.service": "30",
		"fullpipe-recheck.service": "20", "fullpipe-recheck-once.service": "20", "fullpipe-recheck-once.timer": ""} {
		t.Run(name, func(t *testing.T) { checkUnit(t, analyze, name, exposure) })
	}
}

func checkUnit(t *testing.T, analyze, name, exposure string) {
	program := harness.Program(t)
	dir := t.TempDir()
	unit := filepath.Join(dir, name)
	// A timer has a service of the same name.
	for _, one := range []string{name, strings.Replace(name, ".timer", ".service", 1)} {
		text, err := os.ReadFile("../../contrib/" + one)
		if err != nil {
			t.Fatal(err)
		}
		installed := strings.Replace(string(text), "/usr/local/bin/fullpipe", program, 1)
		if err := os.WriteFile(filepath.Join(dir, one), []byte(installed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v: %s", err, out)
	}
	if exposure == "" { // of what is no service
		return
	}
	// The threshold counts tenths of what systemd calls exposure, of 10.
	out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold="+exposure,
		unit).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v: %s", err, out)
	}
}

// TestServicesHaveTheirOwnState: systemd gives a unit's state directory to the unit's user, and root
// takes no journal out of a directory of another user's. So none has root's, /var/lib/fullpipe.
func TestServicesHaveTheirOwnState(t *testing.T) {
	t.Parallel()
	units, err := filepath.Glob("../../contrib/*.service")
	if err != nil || len(units) < 4 {
		t.Fatal(units, err)
	}
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		_, state, has := strings.Cut(string(text), "\nStateDirectory=")
		if !has {
			continue
		}
		state, _, _ = strings.Cut(state, "\n")
		if state == "fullpipe" || !strings.Contains(string(text), "FULLPIPE_STATE=%S/"+state+" ") ||
			!strings.Contains(string(text), "\nStateDirectoryMode=0700\n") {
			t.Errorf("%s has the state directory %s, or not for itself alone", unit, state)
		}
	}
}
