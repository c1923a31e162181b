//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The unit that is shipped is one that systemd understands word by word, and one that it
// calls safe.
func TestServiceUnit(t *testing.T) {
	t.Parallel()
	analyze := needProgram(t, "systemd-analyze")
	text, err := os.ReadFile("../contrib/fullpipe.service")
	if err != nil {
		t.Fatal(err)
	}
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "fullpipe.service")
	installed := strings.Replace(string(text), "/usr/local/bin/fullpipe", program, 1)
	if err := os.WriteFile(unit, []byte(installed), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v: %s", err, out)
	}
	// The threshold counts tenths of what systemd calls exposure, of 10.
	out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=20",
		unit).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: %v: %s", err, out)
	}
}
