//go:build linux

package live

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab/stalltest"
)

// TestTuneBeginsShortFilesWithMore checks that a file that slow start limits gets a larger initial window on the
// route: proven, kept, and undone so that routes are as before.
func TestTuneBeginsShortFilesWithMore(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	stalltest.Undisturbed(t, func() error {
		dir := t.TempDir()
		cmd := exec.Command(program, "lab", "rate=20mbit,rtt=100ms", "--far", "exec $F serve --quiet", "--", "sh", "-euc", `
ip -j route > before
$F tune $FULLPIPE_FAR --apply --yes --budget 8s --file-size 250kB --json > tuned.json || true
ip route get $FULLPIPE_FAR > /dev/null
ip route > with
$F undo > undone
ip -j route | cmp - before
`)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "F="+program, "FULLPIPE_STATE="+filepath.Join(dir, "state"),
			"FULLPIPE_KEY="+harness.TuneKey)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var doc struct {
			Directions []struct {
				Applied *struct {
					Kept   bool
					Reason string
					Gain   struct{ Factor float64 }
				}
				File struct {
					InitialWindow int `json:"initial_window_segments"`
				}
			}
		}
		text, err := os.ReadFile(filepath.Join(dir, "tuned.json"))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &doc); err != nil || len(doc.Directions) != 1 {
			t.Fatalf("%v: %s", err, text)
		}
		routes, err := os.ReadFile(filepath.Join(dir, "with"))
		if err != nil {
			t.Fatal(err)
		}
		a := doc.Directions[0].Applied
		return harness.ErrorUnless(a != nil && a.Kept && a.Gain.Factor > 1.2 && strings.Contains(string(routes), "initcwnd"),
			"no gain was shown: %+v, %+v\n%s", doc.Directions[0].File, a, routes)
	})
}
