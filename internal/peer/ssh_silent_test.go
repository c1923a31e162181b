//go:build unix

package peer

import (
	"bytes"
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

// TestSSH_GetsNoSecrets: ssh and what it starts are given the environment without the key and the history's URL.
func TestSSH_GetsNoSecrets(t *testing.T) {
	said := filepath.Join(t.TempDir(), "environment")
	t.Setenv(KeyVariable, "secret")
	t.Setenv(historyVariable, "postgres://user:secret@db.example.net/")
	t.Setenv("FULLPIPE_TEST_PLAIN", "plain")
	fakeSSH(t, "env > "+said+"; exit 1")
	if _, err := Open(t.Context(), "ssh://nowhere.invalid", Options{}); err == nil {
		t.Error("it was reached")
	}
	text, err := os.ReadFile(said)
	if err != nil || strings.Contains(string(text), "secret") || !strings.Contains(string(text), "plain") {
		t.Errorf("%v: %s", err, text)
	}
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
		"logs in again and again": {"while sleep 0.1; do echo " + arrived + "; done",
			"logged in and then said nothing"},
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

// What a far end says to a command that is run there is bounded, on both streams and while its
// system is asked for: a flood ends at once, and takes no memory.
func TestFloodingSSH(t *testing.T) {
	const flood = "while echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; do :; done"
	for name, c := range map[string]struct {
		script, want string
		copies       bool
	}{
		"a document":        {flood, "more than 1 MiB", false},
		"its system's name": {flood, "more than 4096 B", true},
	} {
		t.Run(name, func(t *testing.T) {
			fakeSSH(t, c.script)
			out, err := RunThere(t.Context(), "ssh://nowhere.invalid", Options{Copy: c.copies}, []string{"audit"}, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%d bytes, %v; want %q", len(out), err, c.want)
			}
		})
	}
	t.Run("complaints", func(t *testing.T) {
		fakeSSH(t, "head -c 4000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo the last line >&2; exit 7")
		_, err := RunThere(t.Context(), "ssh://nowhere.invalid", Options{}, []string{"audit"}, nil)
		if err == nil || len(err.Error()) > 5<<10 || !strings.Contains(err.Error(), "exit status 7") {
			t.Errorf("%.100v", err)
		}
	})
	t.Run("an answer", func(t *testing.T) {
		fakeSSH(t, "cat; exit 3") // a status above 0 beside an answer is one of its answers
		out, err := RunThere(t.Context(), "ssh://nowhere.invalid", Options{}, []string{"audit"}, []byte("{}"))
		if err != nil || !bytes.Equal(out, []byte("{}")) {
			t.Errorf("%q, %v", out, err)
		}
	})
}
