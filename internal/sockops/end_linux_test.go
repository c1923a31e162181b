package sockops

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

	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestRun_SurvivingProcessesLeaveTheCgroup(t *testing.T) {
	testenv.Need(t, steeringNeeds...)
	report, out := steered(t, exec.Command("sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"), Config{})
	pid := must.Get(strconv.Atoi(strings.TrimSpace(out)))(t)
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

// TestSupervisor_FreesProgram kills the steering process, alone and with its process group. The hooks end with it, and
// the program is free within 1 s.
func TestSupervisor_FreesProgram(t *testing.T) {
	testenv.Need(t, steeringNeeds...)
	own := must.Get(os.ReadFile("/proc/self/cgroup"))(t)
	for _, group := range []bool{false, true} {
		steerer, program, left := steering(t)
		if group {
			// The program leaves the group to survive.
			unix.Kill(-steerer.Process.Pid, unix.SIGKILL)
		} else {
			unix.Kill(steerer.Process.Pid, unix.SIGKILL)
		}
		killed := time.Now()
		steerer.Wait()
		free := func() bool {
			its, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", program))
			if err != nil {
				t.Fatalf("the program is gone: %v", err)
			}
			_, err = os.Stat(left)
			return bytes.Equal(own, its) && errors.Is(err, os.ErrNotExist)
		}
		for !free() {
			if time.Since(killed) > 10*time.Second {
				t.Fatalf("killed (its group: %v): the program is still in %s", group, left)
			}
			time.Sleep(time.Millisecond)
		}
		t.Logf("killed (its group: %v): free after %v", group, time.Since(killed))
		unix.Kill(program, unix.SIGKILL)
	}
}

// TestNewCgroup_CleansUpAfterKilledSupervisor checks that the next run cleans up.
func TestNewCgroup_CleansUpAfterKilledSupervisor(t *testing.T) {
	testenv.Need(t, steeringNeeds...)
	steerer, program, left := steering(t)
	defer unix.Kill(program, unix.SIGKILL)
	supervisor := 0
	tasks, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range tasks {
		if text, _ := os.ReadFile(path); strings.HasPrefix(string(text), supervisorName+"\x00"+left+"\x00") {
			supervisor, _ = strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	if supervisor == 0 {
		t.Fatal("no supervisor is there")
	}
	unix.Kill(supervisor, unix.SIGKILL)
	unix.Kill(steerer.Process.Pid, unix.SIGKILL)
	steerer.Wait()
	if _, err := os.Stat(left); err != nil {
		t.Fatalf("somebody cleaned up: %v", err)
	}
	sweep(filepath.Dir(left))
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the killed one's cgroup remains: %v", err)
	}
	if unix.Kill(program, 0) != nil {
		t.Error("the program is gone")
	}
}

// steering starts a process that steers a program, in a new group, and returns the program's pid and cgroup. The
// program has its own session.
func steering(t *testing.T) (steerer *exec.Cmd, program int, group string) {
	t.Helper()
	steerer = job("steer-and-wait")
	steerer.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := steerer.StdoutPipe()
	if err == nil {
		err = steerer.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	must.Get(fmt.Fscan(out, &program))(t)
	groups := cgroups(t, steerer.Process.Pid)
	if len(groups) != 1 {
		t.Fatalf("cgroups of the running program: %v", groups)
	}
	return steerer, program, groups[0]
}

func cgroups(t *testing.T, pid int) []string {
	t.Helper()
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	own, _ := os.ReadFile("/proc/self/cgroup")
	dir := must.Get(ownCgroup(string(mounts), string(own)))(t)
	found, _ := filepath.Glob(fmt.Sprintf("%s/%s%d-*", dir, cgroupPrefix, pid))
	return found
}

func TestRun_ExitStatusAndStartErrors(t *testing.T) {
	testenv.Need(t, steeringNeeds...)
	cmd := exec.Command("sh", "-c", "kill -TERM $$")
	must.Get(Run(context.Background(), cmd, Config{}))(t)
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != unix.SIGTERM {
		t.Errorf("ended by %v", cmd.ProcessState)
	}
	if _, err := Run(context.Background(), exec.Command("/nonexistent"), Config{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
	_, err := Run(context.Background(), exec.Command("true"),
		Config{Rules: []Rule{{Socket: transfer.Socket{Congestion: "nosuch"}}}})
	if err == nil || !strings.Contains(err.Error(), `"nosuch"`) {
		t.Errorf("an unknown congestion control: %v", err)
	}
}
