package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/settings"
	"github.com/fullpipe-net/fullpipe/internal/store/pgtest"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// TestScripts runs the command line as its users do. The program is this test's own file.
func TestScripts(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	copyProgram(t, bin)
	testscript.Run(t, scripts(t, bin, [4]string{}))
	t.Run("postgres", func(t *testing.T) {
		server, stores := pgtest.Start(t), [4]string{}
		for i := range stores {
			stores[i] = server.URL(t)
		}
		params := scripts(t, bin, stores)
		params.Dir, params.Files = "", []string{"testdata/history.txtar", "testdata/store.txtar"}
		testscript.Run(t, params)
	})
}

// scripts run concurrently, each with the same URLs of histories, or without.
func scripts(t *testing.T, bin string, stores [4]string) testscript.Params {
	lab := testenv.Has(t, testenv.Lab)
	return testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv(settings.Variable, "")
			env.Setenv(asProgram, "1")
			for i, url := range stores {
				env.Setenv(fmt.Sprint("STORE", i), url)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status, "answered": answered},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "lab":
				return lab, nil
			case "postgres":
				return stores[0] != "", nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	}
}

// answered is `answered COMMAND ARG…`: the command must end well, with a yes or with a no.
func answered(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: answered COMMAND ARG…")
	}
	if got := statusOf(ts, args); got != exit.Done && got != exit.No {
		ts.Fatalf("exit status %d, want %d or %d", got, exit.Done, exit.No)
	}
}

// status is `status N COMMAND ARG…`: the command must end with that exit status.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := statusOf(ts, args[1:]); got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func statusOf(ts *testscript.TestScript, command []string) int {
	err := ts.Exec(command[0], command[1:]...)
	if err == nil {
		return exit.Done
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	return exit.ExitCode()
}
