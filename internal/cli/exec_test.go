package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/secret"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// secretVariables returns all variables with secrets, set.
func secretVariables() (env []string) {
	for _, name := range secret.Variables {
		env = append(env, name+"=postgres://u:secret@127.0.0.1/d")
	}
	return env
}

func TestExecKeepsSecretsFromPrograms(t *testing.T) {
	env := append([]string{"A=1", secret.Key + "S=kept"}, secretVariables()...)
	if got := secret.Without(append(env, "B=2")); !reflect.DeepEqual(got, []string{"A=1", secret.Key + "S=kept", "B=2"}) {
		t.Errorf("%q", got)
	}
	testenv.Need(t, testenv.Root, testenv.BPF, testenv.Cgroup)
	cmd := program(t, "exec", "--", "sh", "-c", "env; tr '\\0' '\\n' </proc/$$/environ")
	cmd.Env = append(cmd.Env, secretVariables()...)
	out, err := cmd.Output()
	if err != nil || strings.Contains(string(out), "secret") ||
		!strings.Contains(string(out), "PATH=") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLabKeepsSecretsFromPrograms: both ends of a lab share the key by their environment.
func TestLabKeepsSecretsFromPrograms(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.Lab)
	cmd := program(t, "lab", "lan-100m", "--far", "env >&2", "--", "sh", "-c", "env; tr '\\0' '\\n' </proc/$$/environ")
	cmd.Env = append(append(cmd.Env, secretVariables()...), secret.Key+"=shared")
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if all := string(out) + errs.String(); err != nil || strings.Contains(all, "secret") ||
		!strings.Contains(string(out), secret.Key+"=shared\n") {
		t.Errorf("%v\n%s", err, all)
	}
}

func TestExecStatusAndReport(t *testing.T) {
	testenv.Need(t, testenv.Root, testenv.BPF, testenv.Cgroup)
	file := filepath.Join(t.TempDir(), "report.json")
	for _, tt := range []struct {
		command []string
		status  int
	}{
		{[]string{"sh", "-c", "echo to standard output; exit 7"}, 7},
		{[]string{"true"}, 0},
		{[]string{"sh", "-c", "kill -9 $$"}, 137},
		{[]string{"no-such-program"}, 127},
		{[]string{"/"}, 126},
	} {
		os.Remove(file)
		var out, errs strings.Builder
		args := append([]string{"exec", "--report", file, "--"}, tt.command...)
		if got := run(context.Background(), args, console.NewStreams(nil, &out, &errs)); got != tt.status {
			t.Errorf("%v: status %d, want %d\n%s", tt.command, got, tt.status, errs.String())
		}
		if tt.status == 7 && out.String() != "to standard output\n" {
			t.Errorf("standard output is the program's alone: %q", out.String())
		}
		text, err := os.ReadFile(file)
		if ran := tt.status < 126 || tt.status > 127; !ran {
			if !strings.HasPrefix(errs.String(), "fullpipe: ") {
				t.Errorf("%v: no word about why: %q", tt.command, errs.String())
			}
			continue
		}
		var doc record.Exec
		if err := errors.Join(err, json.Unmarshal(text, &doc)); err != nil || doc.Status != tt.status ||
			doc.Schema != "fullpipe/exec/v1" {
			t.Errorf("%v: report %s, %v", tt.command, text, err)
		}
	}
}
