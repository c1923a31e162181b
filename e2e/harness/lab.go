//go:build linux

package harness

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
)

// AwaitPort waits until a program at the far end listens on a TCP port.
func AwaitPort(t *testing.T, l *lab.Lab, port string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		out, err := l.Far.Output("ss", "-Hltn", "sport = :"+port)
		if err != nil {
			t.Fatal(err)
		}
		if len(bytes.TrimSpace(out)) > 0 {
			return
		}
	}
	t.Fatalf("nothing listens on port %s", port)
}

// RunInLab runs a shell script at the near end of a lab and returns its output. $F is the program under test.
func RunInLab(t *testing.T, profile, script string) string {
	t.Helper()
	program := Program(t)
	dir := t.TempDir()
	cmd := exec.Command(program, "lab", profile, "--", "sh", "-euc", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "F="+program, "FULLPIPE_STATE="+filepath.Join(dir, "state"))
	return Output(t, cmd)
}

// TuneKey is the key that both ends of a lab share.
const TuneKey = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// Output returns what a command prints. If it fails, so does the test, with what the command wrote to standard
// error.
func Output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, complaints.String())
	}
	return string(out)
}

// StartLab starts a lab with a path and closes it when the test ends.
func StartLab(t *testing.T, text string) (*lab.Lab, link.Path) {
	t.Helper()
	path, err := link.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Start(t.Context(), lab.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, path
}

// ErrorUnless returns nil if ok is true, else an error.
func ErrorUnless(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}
