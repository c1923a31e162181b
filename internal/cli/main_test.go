package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/cli/settings"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/sockops"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// asProgram makes this test's own file behave as fullpipe.
const asProgram = "FULLPIPE_TEST_PROGRAM"

// TestMain lets labs and supervisors, which start this program's own file, be themselves.
func TestMain(m *testing.M) {
	lab.Engine()
	sockops.Supervisor()
	if os.Getenv(asProgram) != "" {
		if ctx := clocked(); ctx != nil {
			os.Exit(run(ctx, os.Args[1:], console.NewStreams(os.Stdin, os.Stdout, os.Stderr)))
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		status := Run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
		stop()
		os.Exit(status)
	}
	os.Setenv(settings.Variable, "") // the user may have one
	remove := testenv.OwnState()
	status := m.Run()
	remove()
	os.Exit(status)
}

// program is fullpipe as a process of its own.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", settings.Variable+"=", "FULLPIPE_STATE="+t.TempDir())
	return cmd
}

// copyProgram copies this test's own file to a directory.
// It is fullpipe where asProgram is set.
func copyProgram(t *testing.T, dir string) {
	t.Helper()
	name := filepath.Join(dir, "fullpipe")
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	own := must.Get(os.ReadFile(os.Args[0]))(t)
	must.Do(t, os.WriteFile(name, own, 0o755))
}

// ended runs a program to its end and returns its status and output.
func ended(t *testing.T, cmd *exec.Cmd) (status int, errs string) {
	t.Helper()
	var said bytes.Buffer
	if cmd.Stderr == nil {
		cmd.Stderr = &said
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return cmd.ProcessState.ExitCode(), said.String()
}

// endsSoon interrupts a running program and checks that it ends in time; as machines
// are busy, the bound leaves room above the promised second.
func endsSoon(t *testing.T, cmd *exec.Cmd, signal os.Signal) {
	t.Helper()
	must.Do(t, cmd.Process.Signal(signal))
	done := make(chan struct{})
	go func() {
		cmd.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		cmd.Process.Signal(syscall.SIGQUIT)
		<-done
		t.Errorf("%v: still waiting 10 s after %v", cmd.Args[1:], signal)
	}
	want := exit.Interrupted
	if cmd.Args[1] == iperf3.Name {
		want = exit.Failed // as iperf3's own
	}
	if status := cmd.ProcessState.ExitCode(); status != want {
		t.Errorf("%v: status %d after %v", cmd.Args[1:], status, signal)
	}
}
