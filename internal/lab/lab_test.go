//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func TestMain(m *testing.M) {
	Engine()
	if os.Getenv(userVariable) != "" {
		labUser()
	}
	if what := os.Getenv(programVariable); what != "" {
		if err := transferEnd(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// startLab makes a lab that ends with the test.
func startLab(t *testing.T, text string) *Lab {
	t.Helper()
	testenv.Need(t, testenv.Lab)
	path := must.Get(link.Parse(text))(t)
	l := must.Get(Start(context.Background(), Config{Path: path}))(t)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestLab_ProgramsReachEachOther(t *testing.T) {
	t.Parallel()
	l := startLab(t, "rate=20mbit,rtt=10ms")
	// With two requests ping waits for the second answer only twice the round trip of the first.
	pings := func(target string) string {
		one := "ping -n -c 1 -W 10 " + target
		return one + " && " + one
	}
	for _, target := range []string{"$FULLPIPE_FAR", "$FULLPIPE_FAR6", "127.0.0.1"} {
		if out, err := l.Near.Output("sh", "-c", pings(target)); err != nil {
			t.Errorf("near to %s: %v\n%s", target, err, out)
		}
	}
	if out, err := l.Far.Output("sh", "-c", pings("$FULLPIPE_NEAR")); err != nil {
		t.Errorf("far to near: %v\n%s", err, out)
	}
	up, down, err := l.Counters()
	if err != nil || up.Delivered != 6 || down.Delivered != 6 {
		t.Errorf("carried %d up, %d down, %v; want 6 each and no other packets", up.Delivered, down.Delivered, err)
	}
}

func TestRun_ReturnsExitStatus(t *testing.T) {
	t.Parallel()
	l := startLab(t, "rtt=1ms")
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": 143, "kill -KILL $$": 137} {
		if got, err := l.Near.Run(Command{Args: []string{"sh", "-c", script}}); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", script, got, err, want)
		}
	}
}

// An added variable replaces an inherited one.
func TestRun_EnvironmentOverrides(t *testing.T) {
	got := lastOfEach([]string{"A=1", "B=2", "FULLPIPE_KEY=old", "C=3", "FULLPIPE_KEY=new", "A="})
	if want := []string{"B=2", "C=3", "FULLPIPE_KEY=new", "A="}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSignal_EndedProgram checks that a signal to a program that ends at that moment is no error.
func TestSignal_EndedProgram(t *testing.T) {
	t.Parallel()
	l := startLab(t, "rtt=1ms")
	for range 50 {
		p := must.Get(l.Near.Start(Command{Args: []string{"true"}}))(t)
		for ended := false; !ended; {
			select {
			case <-p.Done():
				ended = true
			default:
			}
			must.Do(t, p.Signal(syscall.SIGCONT))
		}
	}
}
