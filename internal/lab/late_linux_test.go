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
)

// linkOf finds the process that carries a lab's packets: a child of its engine.
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

// halt stops a process for about so long and answers between what bounds it really was.
func halt(t *testing.T, pid int, span time.Duration) (least, most time.Duration) {
	t.Helper()
	asked := time.Now()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
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
	least = time.Since(stopped)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	return least, time.Since(asked)
}

// A link that is held up says so, to the millisecond, whether packets are under way or
// not. What the machine itself did to it meanwhile comes on top: of several stops one must
// have been left alone.
func TestStallsAreCounted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, traffic string
	}{
		// empty but for one packet in 100 ms
		{"rate=20mbit,rtt=10ms", "while ping -q -n -c 1 $FULLPIPE_FAR >/dev/null; do sleep 0.1; done"},
		{"rate=5mbit,rtt=10ms,queue=400packets", "ping -q -f -l 100 -s 1400 $FULLPIPE_FAR >/dev/null"},
	} {
		t.Run(c.path, func(t *testing.T) {
			t.Parallel()
			l := startLab(t, c.path)
			p, err := l.Near.Start(Command{Args: []string{"sh", "-c", c.traffic}})
			if err != nil {
				t.Fatal(err)
			}
			if !poll(func() bool { up, _, err := l.Counters(); return err != nil || up.Delivered > 0 }) {
				t.Fatal("no traffic")
			}
			pid := linkOf(t, l)
			for _, span := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond} {
				exact := false
				var told []string
				for range 30 {
					before, err := l.Account()
					if err != nil {
						t.Fatal(err)
					}
					least, most := halt(t, pid, span)
					after, err := l.Account()
					if err != nil {
						t.Fatal(err)
					}
					up, down := after.Up.Stalled-before.Up.Stalled, after.Down.Stalled-before.Down.Stalled
					told = append(told, fmt.Sprint(least, most, up, down))
					least -= time.Millisecond
					if up < least || down < least || after.Up.Max < least || after.Down.Max < least {
						t.Errorf("stopped for %v or more: stalled for %v up and %v down, at most %v and %v", least, up, down,
							after.Up.Max, after.Down.Max)
					}
					exact = up < most+time.Millisecond && down < most+time.Millisecond &&
						after.Up.Stalls == before.Up.Stalls+1 && after.Down.Stalls == before.Down.Stalls+1
					if exact {
						break
					}
				}
				if !exact {
					t.Errorf("no stop of about %v came out as it was: %v", span, told)
				}
			}
			if err := p.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A lab knows what a round trip takes at least, whatever was asked for, and counts none of
// its own echoes.
func TestFloorIsKnown(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"rtt=0ms", "rate=10mbit,rtt=30ms,loss=100%",
		"rate=10mbit,rtt=3ms,duplex=half,stack=windows-95"} {
		a, err := startLab(t, path).Account()
		if err != nil || a.Floor <= 0 || a.Up.Packets+a.Down.Packets != 0 {
			t.Errorf("%s: %+v, %v", path, a, err)
		}
	}
}
