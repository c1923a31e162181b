//go:build linux

package live

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab/stalltest"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
)

// TestTuneAsksForECN checks `tune --apply` before a queue that marks: it enables ECN where loss limits, sees the
// marks, keeps ECN only with a proven gain, and undo restores each setting.
func TestTuneAsksForECN(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	stalltest.Undisturbed(t, func() error {
		dir := t.TempDir()
		cmd := exec.Command(program, "lab", "rate=4mbit,rtt=80ms,ecn=2packets", "--far", "exec $F serve --quiet", "--", "sh",
			"-euc", harness.SysctlFunction+`
sysctls > before
$F tune $FULLPIPE_FAR --direction down --apply --yes --budget 12s --json > tuned.json || true
cat /proc/sys/net/ipv4/tcp_ecn > with
$F undo > undone
sysctls | cmp - before
`)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "F="+program, "FULLPIPE_STATE="+filepath.Join(dir, "state"),
			"FULLPIPE_KEY="+harness.TuneKey)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(filepath.Join(dir, "tuned.json"))
		if err != nil {
			t.Fatal(err)
		}
		with, err := os.ReadFile(filepath.Join(dir, "with"))
		if err != nil {
			t.Fatal(err)
		}
		var doc printed.Tune
		if err := json.Unmarshal(text, &doc); err != nil || len(doc.Directions) != 1 {
			t.Fatalf("%v: %s", err, text)
		}
		a := doc.Directions[0].Applied
		if a == nil || a.Marked == nil {
			return fmt.Errorf("nothing was asked for: %s", doc.Directions[0].Before.Limiter)
		}
		kept := string(with) == "1\n"
		return harness.ErrorUnless(*a.Marked > 0 && kept == a.Kept, "marked %d, kept %v, the setting is %q: %s", *a.Marked,
			a.Kept, with,
			a.Reason)
	})
}
