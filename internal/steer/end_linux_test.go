package steer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestWhatIsLeftGoesBack(t *testing.T) {
	needs(t)
	report, out := steered(t, exec.Command("sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"), Config{})
	pid, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Kill(pid, unix.SIGKILL)
	own, _ := os.ReadFile("/proc/self/cgroup")
	its, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if report.Left != 1 || !bytes.Equal(own, its) {
		t.Errorf("%d left, in %s", report.Left, its)
	}
	if mine := cgroups(t, os.Getpid()); len(mine) > 0 {
		t.Errorf("cgroups remain: %v", mine)
	}
}

// TestKilled ends the steering process without a chance to clean up: the hooks go with
// it, and the next one removes the cgroup once it is empty.
func TestKilled(t *testing.T) {
	needs(t)
	steerer := job("steer-and-wait")
	out, err := steerer.StdoutPipe()
	if err == nil {
		err = steerer.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	left := cgroups(t, steerer.Process.Pid)
	if len(left) != 1 {
		t.Fatalf("cgroups of the running program: %v", left)
	}
	steerer.Process.Kill()
	steerer.Wait()
	procs, _ := os.ReadFile(filepath.Join(left[0], "cgroup.procs"))
	for _, pid := range strings.Fields(string(procs)) {
		n, _ := strconv.Atoi(pid)
		unix.Kill(n, unix.SIGKILL)
	}
	deadline := time.Now().Add(10 * time.Second)
	for len(cgroups(t, steerer.Process.Pid)) > 0 {
		if time.Now().After(deadline) {
			t.Fatal("the killed one's cgroup remains")
		}
		sweep(filepath.Dir(left[0]))
	}
}

func cgroups(t *testing.T, pid int) []string {
	t.Helper()
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	own, _ := os.ReadFile("/proc/self/cgroup")
	dir, err := ownCgroup(string(mounts), string(own))
	if err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(fmt.Sprintf("%s/%s%d-*", dir, cgroupPrefix, pid))
	return found
}

func TestTheProgramsEndIsItsOwn(t *testing.T) {
	needs(t)
	cmd := exec.Command("sh", "-c", "kill -TERM $$")
	if _, err := Run(context.Background(), cmd, Config{}); err != nil {
		t.Fatal(err)
	}
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != unix.SIGTERM {
		t.Errorf("ended by %v", cmd.ProcessState)
	}
	if _, err := Run(context.Background(), exec.Command("/nonexistent"), Config{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
	_, err := Run(context.Background(), exec.Command("true"), Config{Rules: []Rule{{Socket: transfer.Socket{Congestion: "nosuch"}}}})
	if err == nil || !strings.Contains(err.Error(), `"nosuch"`) {
		t.Errorf("an unknown congestion control: %v", err)
	}
}
