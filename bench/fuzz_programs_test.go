//go:build linux

package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fuzzPrograms are the test binaries of packages, compiled for fuzzing at first use.
type fuzzPrograms struct {
	dir    string
	corpus string // where the Go tool keeps the inputs that reached new code

	mu sync.Mutex // one compiles at a time
}

func newFuzzPrograms(t *testing.T) *fuzzPrograms {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return &fuzzPrograms{dir: t.TempDir(), corpus: filepath.Join(strings.TrimSpace(string(cache)), "fuzz",
		"github.com/fullpipe-net/fullpipe")}
}

// of returns the test binary of a package.
func (p *fuzzPrograms) of(ctx context.Context, dir string) (program string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	program = filepath.Join(p.dir, strings.ReplaceAll(dir, "/", "-"))
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	build := exec.CommandContext(ctx, "go", "test", "-c", "-fuzz", ".", "-o", program, "./"+dir)
	build.Dir = ".."
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
}

var executed = regexp.MustCompile(`execs: (\d+)`)

// fuzz fuzzes for the given time with one worker on one processor. It returns the processor time used, which a busy
// machine makes shorter than requested, and the number of inputs tried.
func (p *fuzzPrograms) fuzz(ctx context.Context, f *fuzzTarget, length time.Duration) (took time.Duration,
	executions int64, err error) {
	program, err := p.of(ctx, f.Dir)
	if err != nil {
		return 0, 0, err
	}
	cmd := exec.CommandContext(ctx, program, "-test.run", "^$", "-test.fuzz", "^"+f.Name+"$", "-test.parallel", "1",
		"-test.fuzztime", length.String(), "-test.fuzzminimizetime", "1s", // or a slice is spent on few inputs
		"-test.fuzzcachedir", filepath.Join(p.corpus, f.Dir))
	cmd.Dir, cmd.Env = filepath.Join("..", f.Dir), append(os.Environ(), "GOMAXPROCS=1")
	out, err := cmd.CombinedOutput()
	// The Go tool may report its own timeout as a failure, which leaves no input.
	if err != nil && (!bytes.Contains(out, []byte("context deadline exceeded")) ||
		bytes.Contains(out, []byte("Failing input written"))) {
		return 0, 0, fmt.Errorf("%w: %s", err, out)
	}
	if all := executed.FindAllSubmatch(out, -1); len(all) > 0 {
		executions, err = strconv.ParseInt(string(all[len(all)-1][1]), 10, 64)
	}
	// The time of the worker, plus the little that this program itself used while it waited.
	return min(length, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()).Round(time.Millisecond), executions, err
}
