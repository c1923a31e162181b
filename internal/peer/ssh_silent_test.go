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

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/secret"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// fakeSSH replaces ssh by a shell script.
func fakeSSH(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "ssh"), []byte("#!/bin/sh\n"+script), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestSSH_GetsNoSecrets checks that the environment of ssh and its children has neither the key nor the history's
// URL.
func TestSSH_GetsNoSecrets(t *testing.T) {
	said := filepath.Join(t.TempDir(), "environment")
	for _, name := range secret.Variables {
		t.Setenv(name, "secret")
	}
	t.Setenv(secret.Store, "postgres://user:secret@db.example.net/")
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

// TestSSH_EndsSilentFarEnds checks that a silent ssh far end times out and leaves no wait. Only the
// tested timeout of each case is short.
func TestSSH_EndsSilentFarEnds(t *testing.T) {
	// hang blocks until the test is over: nothing writes to the pipe.
	pipe := filepath.Join(t.TempDir(), "pipe")
	must.Do(t, unix.Mkfifo(pipe, 0o600))
	hang := "cat " + pipe
	defer func() {
		if f, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil {
			f.Close()
		}
	}()
	const brief = 300 * time.Millisecond
	neverLogsIn := sshTimeouts{login: brief, typing: brief, silence: time.Hour, goodbye: brief}
	logsIn := sshTimeouts{login: time.Hour, typing: time.Hour, silence: brief, goodbye: brief}
	ends := sshTimeouts{login: time.Hour, typing: time.Hour, silence: time.Hour, goodbye: brief}
	for name, c := range map[string]struct {
		script, want string
		times        sshTimeouts
	}{
		"says nothing":                  {"exec " + hang, "did not respond", neverLogsIn},
		"ignores its end":               {"trap '' HUP INT TERM PIPE; " + hang + " & wait", "did not respond", neverLogsIn},
		"leaves a child with its pipes": {hang + " & exit 0", "no server came up", ends},
		"logs in and says nothing": {"echo " + arrived + "; " + hang + " & wait", "logged in but sent nothing",
			logsIn},
		"logs in again and again": {"while sleep 0.1; do echo " + arrived + "; done", "logged in but sent nothing",
			logsIn},
		"says what is no server": {"echo " + arrived + "; echo hello; exec " + hang, "logged in but sent nothing",
			logsIn},
	} {
		t.Run(name, func(t *testing.T) {
			fakeSSH(t, c.script)
			_, err := Open(t.Context(), "ssh://nowhere.invalid", Options{sshTimes: &c.times})
			var e *SSHError
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

// The output of a remote command is limited, on both streams and while the far system is detected. A flood ends at
// once and takes no memory.
func TestSSH_LimitsOutput(t *testing.T) {
	const flood = "while echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; do :; done"
	for name, c := range map[string]struct {
		script, want string
		copies       bool
	}{
		"a document":        {flood, "output exceeds 1 MiB", false},
		"its system's name": {flood, "output exceeds 4096 B", true},
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
		fakeSSH(t, "cat; exit 3") // a status above 0 with output is a valid answer
		out, err := RunThere(t.Context(), "ssh://nowhere.invalid", Options{}, []string{"audit"}, []byte("{}"))
		if err != nil || !bytes.Equal(out, []byte("{}")) {
			t.Errorf("%q, %v", out, err)
		}
	})
}

// TestRunThere_RunsTheCopyOfAnOpenFarEnd checks that a command runs the copy that Open brought, and brings one of its
// own where that one is gone.
func TestRunThere_RunsTheCopyOfAnOpenFarEnd(t *testing.T) {
	there := t.TempDir()
	t.Setenv("TMPDIR", there)
	log := filepath.Join(there, "log")
	fakeSSH(t, `for word; do :; done; echo "$word" >>`+log+`; [ "$word" = "uname -sm" ] && exit 9; exec sh -c "$word"`)
	o := Options{Copy: true, CopyName: "NAME"}
	must.Do(t, os.Mkdir(filepath.Join(there, "fullpipe-NAME"), 0o700))
	program := filepath.Join(there, "fullpipe-NAME", "fullpipe")
	must.Do(t, os.WriteFile(program, []byte("#!/bin/sh\necho \"$@\"; cat"), 0o700))
	out, err := RunThere(t.Context(), "ssh://far.invalid", o, []string{"apply", "-"}, []byte("{}"))
	if err != nil || string(out) != "apply -\n{}" {
		t.Errorf("%q, %v", out, err)
	}
	if os.Getuid() == 0 { // another user's copy is not run
		must.Do(t, os.Chown(filepath.Dir(program), 65534, 65534))
	} else if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	_, err = RunThere(t.Context(), "ssh://far.invalid", o, []string{"apply", "-"}, []byte("{}"))
	calls, failed := os.ReadFile(log)
	if failed != nil || strings.Count(string(calls), "\n") != 3 || err == nil ||
		!strings.Contains(err.Error(), "query its system") {
		t.Errorf("%v after %s (%v)", err, calls, failed)
	}
}
