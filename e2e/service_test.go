//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The units that are shipped are ones that systemd understands word by word, and ones that
// it calls safe: serve's, which needs nothing, more than watch's, which sees all programs.
func TestServiceUnit(t *testing.T) {
	t.Parallel()
	analyze := needProgram(t, "systemd-analyze")
	for name, exposure := range map[string]string{"fullpipe.service": "20", "fullpipe-watch.service": "30"} {
		t.Run(name, func(t *testing.T) { checkUnit(t, analyze, name, exposure) })
	}
}

func checkUnit(t *testing.T, analyze, name, exposure string) {
	text, err := os.ReadFile("../contrib/" + name)
	if err != nil {
		t.Fatal(err)
	}
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), name)
	installed := strings.Replace(string(text), "/usr/local/bin/fullpipe", program, 1)
	if err := os.WriteFile(unit, []byte(installed), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v: %s", err, out)
	}
	// The threshold counts tenths of what systemd calls exposure, of 10.
	out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold="+exposure,
		unit).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v: %s", err, out)
	}
}
