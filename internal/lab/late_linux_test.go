package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// linkOf returns the PID of the process that carries a lab's packets: a child of its engine.
func linkOf(t *testing.T, l *Lab) int {
	t.Helper()
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", l.engine.child.Process.Pid))
	for _, name := range all {
		children, _ := os.ReadFile(name)
		for _, field := range strings.Fields(string(children)) {
			command, _ := os.ReadFile("/proc/" + field + "/cmdline")
			if strings.HasPrefix(string(command), linkName) {
				pid, _ := strconv.Atoi(field)
				return pid
			}
		}
	}
	t.Fatal("the lab has no link")
	return 0
}

// halt stops a process for a time of at least span and returns the shortest that it can have been.
func halt(t *testing.T, pid int, span time.Duration) time.Duration {
	t.Helper()
	must.Do(t, syscall.Kill(pid, syscall.SIGSTOP))
	for all := false; !all; { // a signal is delivered when the threads next run
		states, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		all = len(states) > 0
		for _, name := range states {
			stat, _ := os.ReadFile(name)
			_, rest, _ := strings.Cut(string(stat), ") ")
			all = all && strings.HasPrefix(rest, "T")
		}
	}
	stopped := time.Now()
	<-time.After(span)
	took := time.Since(stopped)
	must.Do(t, syscall.Kill(pid, syscall.SIGCONT))
	return took
}

// TestAccount_CountsStalls checks that a stop of the link's process counts as a stall in both directions. A packet in
// flight for 1 min in each keeps the link in use.
func TestAccount_CountsStalls(t *testing.T) {
	t.Parallel()
	l := startLab(t, "rate=20mbit,rtt=2m")
	for end, to := range map[*End]string{l.Near: "$FULLPIPE_FAR", l.Far: "$FULLPIPE_NEAR"} {
		must.Get(end.Start(Command{Args: []string{"sh", "-c", "ping -n -c 1 " + to}}))(t)
	}
	if !poll(func() bool {
		up, down, err := l.Counters()
		return err != nil || up.Carried > 0 && down.Carried > 0
	}) {
		t.Fatal("no traffic")
	}
	pid := linkOf(t, l)
	for _, span := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond} {
		before := must.Get(l.Lateness())(t)
		least := halt(t, pid, span) - time.Duration(tick)
		after := must.Get(l.Lateness())(t)
		for name, d := range map[string][2]Late{"up": {before.Up, after.Up}, "down": {before.Down, after.Down}} {
			if stalled := d[1].Stalled - d[0].Stalled; stalled < least || d[1].Max < least || d[1].Stalls <= d[0].Stalls {
				t.Errorf("%s: stopped for %v more than a tick: stalled for %v, at most %v", name, least, stalled, d[1].Max)
			}
		}
	}
}

// A lab measures its least RTT whatever its delay is, and does not count its own echoes.
func TestAccount_Floor(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"rtt=0ms", "rate=10mbit,rtt=30ms,loss=100%",
		"rate=10mbit,rtt=3ms,duplex=half,stack=windows-95"} {
		a, err := startLab(t, path).Lateness()
		if err != nil || a.Floor <= 0 || a.Up.Packets+a.Down.Packets != 0 {
			t.Errorf("%s: %+v, %v", path, a, err)
		}
	}
}
