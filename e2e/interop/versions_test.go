//go:build linux

package interop

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

// before is a commit of which programs are in use: fleets are brought up to date in steps.
const before = "d052a4f"

// programOf builds the program of a commit of this repository's history.
func programOf(t *testing.T, commit string) string {
	t.Helper()
	if err := exec.Command("git", "cat-file", "-e", commit+"^{commit}").Run(); err != nil {
		t.Skipf("commit %s is not in this clone's history (a shallow clone, or no git): %v", commit, err)
	}
	dir := t.TempDir()
	archive := exec.Command("sh", "-c", "git -C \"$(git rev-parse --show-toplevel)\" archive "+commit+
		" | tar -x -C \"$0\"", dir)
	if out, err := archive.CombinedOutput(); err != nil {
		t.Fatalf("git archive %s: %v: %s", commit, err, out)
	}
	program := filepath.Join(dir, "fullpipe-"+commit)
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "./cmd/fullpipe")
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v: %s", commit, err, out)
	}
	return program
}

// The program of today and one from before it measure with each other, either being the
// far end.
func TestVersionsMeasureWithEachOther(t *testing.T) {
	t.Parallel()
	today := harness.Program(t)
	old := programOf(t, before)
	for _, pair := range []struct{ name, far, near string }{{"an older far end", old, today}, {"a newer far end", today,
		old}} {
		t.Run(pair.name, func(t *testing.T) {
			address, key := harness.StartServe(t, pair.far)
			for _, args := range []string{"-d up", "-d down", "-d up --parallel 3", "-d down --receive-buffer 32KiB",
				"-d up --receive-buffer 32KiB", "--bidir",
				"--udp --rate 5mbit -d up", "--udp --rate 5mbit -d down"} {
				cmd := exec.CommandContext(t.Context(), pair.near, append([]string{"measure", "fullpipe://" + address, "--json",
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
			if out, err := exec.CommandContext(t.Context(), pair.near, "measure", "fullpipe://"+address, "-t", "100ms", "--key",
				strings.Repeat("ab", 32)).CombinedOutput(); err == nil ||
				!strings.Contains(string(out), "another key") {
				t.Errorf("with another key: %v: %s", err, out)
			}
		})
	}
}
