//go:build linux

package live

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/lab/stalltest"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestExplainedLimitersCanBeSeen runs the command line that `explain` gives for each limiter, unchanged. Its last
// verdict must be that limiter.
func TestExplainedLimitersCanBeSeen(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	said := regexp.MustCompile(`limited by:?\s+([a-z-]+)`)
	for _, name := range verdict.Names() {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			explained, ok := text.ExplainLimiter(string(name), advice.Linux)
			if !ok || explained.Lab == "" {
				t.Fatal("no line")
			}
			stalltest.Undisturbed(t, func() error {
				cmd := exec.Command("sh", "-c", explained.Lab)
				cmd.Dir = t.TempDir()
				cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
				cmd.Stderr = t.Output()
				out, err := cmd.Output()
				if err != nil {
					return fmt.Errorf("%s: %w\n%s", explained.Lab, err, out)
				}
				all := said.FindAllSubmatch(out, -1)
				if len(all) == 0 || string(all[len(all)-1][1]) != string(name) {
					return fmt.Errorf("%s:\n%s", explained.Lab, out)
				}
				return nil
			})
		})
	}
}
