//go:build linux

package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Variables that name binaries, so that they are not built.
const (
	programVariable    = "FULLPIPE_PROGRAM"
	hubProgramVariable = "FULLPIPE_HUB_PROGRAM"
)

// Program returns the path of the program under test: FULLPIPE_PROGRAM, or a binary that is built once
// for the test package, also for its tests that run themselves again in a namespace.
func Program(t *testing.T) string {
	t.Helper()
	return named(t, programVariable, program)
}

// HubProgram is Program for fullpipe-hub: FULLPIPE_HUB_PROGRAM.
func HubProgram(t *testing.T) string {
	t.Helper()
	return named(t, hubProgramVariable, hub)
}

// named returns the path in a variable. Without one it builds the program and sets the variable.
func named(t *testing.T, variable string, build func() (string, error)) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	path := built(t, build)
	err := os.Setenv(variable, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// HostileProgram returns the path of bench/hostile, which plays every hostile far end. It is built once for
// the test package.
func HostileProgram(t *testing.T) string {
	t.Helper()
	return built(t, hostile)
}

// Root returns the root directory of the repository.
func Root(t testing.TB) string {
	t.Helper()
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

var findRoot = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module github.com/fullpipe-net/fullpipe\n") {
			return dir, nil
		}
	}
	return "", errors.New("the tests do not run in the repository")
})

var (
	buildMu  sync.Mutex // guards buildDir
	buildDir string     // removed by Main; "" until something is built

	program = sync.OnceValues(func() (string, error) { return build(".", "./cmd/fullpipe", "fullpipe") })
	hub     = sync.OnceValues(func() (string, error) { return build(".", "./cmd/fullpipe-hub", "fullpipe-hub") })
	hostile = sync.OnceValues(func() (string, error) { return build("bench", "./hostile", "hostile") })
)

// build builds a package of the module in a directory of the repository, statically as users have it, so that
// the binary runs at any far end.
func build(module, source, name string) (string, error) {
	root, err := findRoot()
	if err != nil {
		return "", err
	}
	buildMu.Lock()
	defer buildMu.Unlock()
	if buildDir == "" {
		if buildDir, err = os.MkdirTemp("", "fullpipe-e2e"); err != nil {
			return "", err
		}
	}
	path := filepath.Join(buildDir, name)
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, source) // as a release
	cmd.Dir = filepath.Join(root, module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w: %s", source, err, out)
	}
	return path, nil
}

func built(t *testing.T, get func() (string, error)) string {
	t.Helper()
	path, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// StartCommand starts a program and kills it when the test ends.
func StartCommand(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
}
