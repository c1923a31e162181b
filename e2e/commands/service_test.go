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

// TestServiceUnit checks that systemd understands each line of the shipped units and rates them as safe: those of
// serve and recheck, which need nothing, safer than watch's, which sees all programs.
func TestServiceUnit(t *testing.T) {
	t.Parallel()
	analyze := testenv.Program(t, testenv.SystemdAnalyze)
	for name, exposure := range map[string]string{"fullpipe.service": "20", "fullpipe-watch.service": "30",
		"fullpipe-agent.service": "20", "fullpipe-hub.service": "20",
		"fullpipe-recheck.service": "20", "fullpipe-recheck-once.service": "20", "fullpipe-recheck-once.timer": ""} {
		t.Run(name, func(t *testing.T) { checkUnit(t, analyze, name, "", exposure) })
	}
	t.Run("fullpipe-drops.conf", func(t *testing.T) {
		checkUnit(t, analyze, "fullpipe.service", "fullpipe-drops.conf", "30")
	})
}

// checkUnit checks a unit with a drop-in, "": none.
func checkUnit(t *testing.T, analyze, name, dropIn, exposure string) {
	program := harness.Program(t)
	dir := t.TempDir()
	unit := filepath.Join(dir, name)
	// A timer has a service of the same name.
	for _, one := range []string{name, strings.Replace(name, ".timer", ".service", 1)} {
		text, err := os.ReadFile("../../contrib/" + one)
		if err != nil {
			t.Fatal(err)
		}
		installed := string(text)
		if name == "fullpipe-hub.service" {
			installed = strings.Replace(installed, "/usr/local/bin/fullpipe-hub", harness.HubProgram(t), 1)
		}
		installed = strings.Replace(installed, "/usr/local/bin/fullpipe", program, 1)
		if err := os.WriteFile(filepath.Join(dir, one), []byte(installed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if dropIn != "" {
		text, err := os.ReadFile("../../contrib/" + dropIn)
		if err == nil {
			err = os.Mkdir(unit+".d", 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		installed := strings.Replace(string(text), "/usr/local/bin/fullpipe", program, 1)
		if err := os.WriteFile(filepath.Join(unit+".d", "drops.conf"), []byte(installed), 0o644); err != nil {
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

// TestServicesHaveTheirOwnState checks that no unit has root's state directory, /var/lib/fullpipe. systemd gives a
// unit's state directory to the unit's user, and root accepts no journal from another user's directory.
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
