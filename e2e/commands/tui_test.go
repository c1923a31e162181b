//go:build linux

package commands

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// TestWatchOnATerminal drives the table of `watch` by tmux, as a user does: it appears, a row opens into its limiter
// and the action, q restores the terminal.
func TestWatchOnATerminal(t *testing.T) {
	t.Parallel()
	tmux := testenv.Program(t, testenv.Tmux)
	program := harness.Program(t)
	dir := t.TempDir()
	script := fmt.Sprintf("%[1]s lab rate=20mbit,rtt=20ms --far 'sh -c \"iperf3 -s >/dev/null\"' -- sh -c '"+
		"sleep 0.5; iperf3 -c $FULLPIPE_FAR -t 60 >/dev/null & "+
		"%[1]s watch --every 500ms; echo ended with $?; kill $!; sleep 60'",
		program)
	file := filepath.Join(dir, "script")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	drive := func(args ...string) string {
		out, err := exec.Command(tmux, append([]string{"-S", filepath.Join(dir, "socket")}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	drive("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "sh "+file)
	defer drive("kill-server")
	await := func(words ...string) {
		t.Helper()
		var screen string
		for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
			screen = drive("capture-pane", "-p")
			missing := false
			for _, word := range words {
				missing = missing || !strings.Contains(screen, word)
			}
			if !missing {
				return
			}
		}
		t.Fatalf("%q never appear together on\n%s", words, screen)
	}
	await("fullpipe watch", "PROGRAM", "iperf3[", "to 198.18.0.2:5201", "q quit")
	drive("send-keys", "Down")
	drive("send-keys", "Enter")
	await("limited", "do ", "windows")
	drive("send-keys", "g")
	await("a row a program")
	drive("resize-window", "-x", "60", "-y", "12")
	await("fullpipe watch", "iperf3")
	drive("resize-window", "-x", "200", "-y", "50")
	await("fullpipe watch", "iperf3", "RETR", "LIMITED BY", "TIME")
	before := drive("capture-pane", "-p")
	until := time.Now().Add(30 * time.Second)
	for drive("capture-pane", "-p") == before {
		time.Sleep(50 * time.Millisecond)
		if time.Now().After(until) {
			t.Fatalf("the table is not drawn again:\n%s", before)
		}
	}
	drive("send-keys", "?")
	await("opens a row")
	if screen := drive("capture-pane", "-p"); strings.Contains(screen, "RETR") {
		t.Errorf("the table is still visible next to the help:\n%s", screen)
	}
	drive("send-keys", "?")
	drive("send-keys", "q")
	await("ended with 0")
}
