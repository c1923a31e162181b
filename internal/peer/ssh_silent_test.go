//go:build unix

package peer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// fakeSSH puts a shell script in ssh's place.
func fakeSSH(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// An ssh far end that falls silent, whatever it leaves behind, ends in a bounded time.
func TestSilentSSH(t *testing.T) {
	brief := &sshTimes{login: 300 * time.Millisecond, typing: 300 * time.Millisecond, silence: 300 * time.Millisecond,
		goodbye: 100 * time.Millisecond}
	for name, c := range map[string]struct{ script, want string }{
		"says nothing":                  {"exec sleep 20", "nothing was heard"},
		"ignores its end":               {"trap '' HUP INT TERM PIPE; sleep 20 & wait; sleep 20", "nothing was heard"},
		"leaves a child with its pipes": {"sleep 20 & exit 0", "no server came up"},
		"logs in and says nothing":      {"echo " + arrived + "; sleep 20 & wait", "logged in and then said nothing"},
		"says what is no server": {"echo " + arrived + "; echo hello; exec sleep 20",
			"logged in and then said nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			fakeSSH(t, c.script)
			begun := time.Now()
			_, err := Open(t.Context(), "ssh://nowhere.invalid", Options{sshTimes: brief})
			var e *SSHError
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
			if took := time.Since(begun); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}
