//go:build linux

package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// userVariable makes the test binary a lab's user of its own, to be killed.
const userVariable = "FULLPIPE_LAB_TEST_USER"

// labUser runs a lab with all features, whose programs leave children (one a daemon), and exits with the near
// program's status.
func labUser() {
	path, err := link.Parse("rate=20mbit,rtt=1ms,vpn=wireguard")
	if err != nil {
		panic(err)
	}
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	status, err := Run{
		Config: Config{Path: path},
		Far: Command{Args: []string{"sh", "-c", "setsid sleep 1000 & \"$0\"", program},
			Env: []string{userVariable + "=", programVariable + "=receive"}},
		Near: Command{Args: []string{"sh", "-c", os.Getenv(userVariable)}, Stdin: os.Stdin, Stdout: os.Stdout,
			Stderr: os.Stderr},
		Signals: signals,
	}.Do(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(125)
	}
	os.Exit(status)
}

// poll repeats ask until it returns true or 1 min has passed.
func poll(ask func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 6000 {
		if ask() {
			return true
		}
		<-tick.C
	}
	return false
}

// inNamespace lists the processes in the PID namespace of the given name (a link's text).
func inNamespace(pidNamespace string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/ns/pid")
	for _, name := range all {
		if to, err := os.Readlink(name); err == nil && to == pidNamespace {
			pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// holders lists the processes that are in one of the network namespaces or have it open.
func holders(namespaces []string) (pids []string) {
	for _, pattern := range []string{"/proc/[0-9]*/ns/net", "/proc/[0-9]*/fd/*"} {
		all, _ := filepath.Glob(pattern)
		for _, name := range all {
			if to, err := os.Readlink(name); err == nil && slices.Contains(namespaces, to) {
				pids = append(pids, strings.Split(name, "/")[2])
			}
		}
	}
	return pids
}

// engineOf finds the engine child of a process.
func engineOf(t *testing.T, user int) int {
	t.Helper()
	children := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", user, user)))(t)
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", user))
	for _, name := range tasks {
		more, _ := os.ReadFile(name)
		children = append(append(children, ' '), more...)
	}
	for _, field := range strings.Fields(string(children)) {
		command, _ := os.ReadFile("/proc/" + field + "/cmdline")
		if strings.HasPrefix(string(command), engineName) {
			pid, _ := strconv.Atoi(field)
			return pid
		}
	}
	t.Fatalf("process %d has no engine", user)
	return 0
}

// scene is a lab in use, ended one way.
type scene struct {
	user   *exec.Cmd
	engine int
	near   int
}

type ending struct {
	name   string
	script string
	end    func(scene) error
	status int // of the user; -1: killed
}

// forever is a program that runs until it is killed.
const forever = "echo ready; exec sleep 1000"

// TestLab_NothingLeftAfterSignals and TestLab_NothingLeftAfterKills check that nothing of a lab outlives its user.
func TestLab_NothingLeftAfterSignals(t *testing.T) {
	checkNothingLeft(t, []ending{
		{"interrupt", forever, func(s scene) error { return s.user.Process.Signal(syscall.SIGINT) }, 130},
		{"terminate", forever, func(s scene) error { return s.user.Process.Signal(syscall.SIGTERM) }, 143},
		{"terminate until it ends a program that ignores it", `trap "" INT TERM; ` + forever, func(s scene) error {
			if !poll(func() bool { return s.user.Process.Signal(syscall.SIGTERM) != nil || syscall.Kill(s.near, 0) != nil }) {
				return errors.New("the program still runs")
			}
			return nil
		}, 137},
	})
}

func TestLab_NothingLeftAfterKills(t *testing.T) {
	checkNothingLeft(t, []ending{
		{"kill the user", forever, func(s scene) error { return s.user.Process.Kill() }, -1},
		{"kill the engine", forever, func(s scene) error { return syscall.Kill(s.engine, syscall.SIGKILL) }, 125},
		{"crash the engine", forever, func(s scene) error { return syscall.Kill(s.engine, syscall.SIGSEGV) }, 125},
		{"kill the near program", forever, func(s scene) error { return syscall.Kill(s.near, syscall.SIGKILL) }, 137},
	})
}

func checkNothingLeft(t *testing.T, tests []ending) {
	testenv.Need(t, testenv.Lab)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			user := exec.CommandContext(ctx, "/proc/self/exe")
			user.Env = append(os.Environ(), userVariable+"="+test.script)
			out := must.Get(user.StdoutPipe())(t)
			must.Do(t, user.Start())
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
				t.Fatalf("near program: %q, %v", line, err)
			}
			s := scene{user: user, engine: engineOf(t, user.Process.Pid)}
			pidNamespace := must.Get(os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", s.engine)))(t)
			pids := inNamespace(pidNamespace)
			if len(pids) != 6 { // engine, link, near's sleep, far's shell, its sleep and its server
				t.Errorf("%d processes in the lab, want 6", len(pids))
			}
			var networks []string
			for _, pid := range pids {
				network, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
				if !slices.Contains(networks, network) {
					networks = append(networks, network)
				}
				command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
				if string(command) == "sleep\x001000\x00" && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n",
					s.engine)) {
					s.near = pid
				}
			}
			if len(networks) != 3 {
				t.Errorf("%d network namespaces in the lab, want 3", len(networks))
			}
			must.Do(t, test.end(s))
			user.Wait()
			if got := user.ProcessState.ExitCode(); got != test.status {
				t.Errorf("exit status %d, want %d", got, test.status)
			}
			var processes []int
			var users []string
			if !poll(func() bool {
				processes = inNamespace(pidNamespace)
				if len(processes) == 0 {
					users = holders(networks)
				}
				return len(processes)+len(users) == 0
			}) {
				t.Fatalf("left behind: processes %v, namespaces open in %v", processes, users)
			}
		})
	}
}

// Starting and closing labs leaves this process unchanged.
func TestClose_ReleasesEverything(t *testing.T) {
	testenv.Need(t, testenv.Lab)
	descriptors := func() int {
		all := must.Get(os.ReadDir("/proc/self/fd"))(t)
		return len(all)
	}
	path := must.Get(link.Parse("rate=20mbit,rtt=1ms,vpn=wireguard"))(t)
	cycle := func() {
		l := must.Get(Start(context.Background(), Config{Path: path}))(t)
		var out tail
		must.Get(l.Far.Start(Command{Args: []string{"sleep", "1000"}, Stdout: &out}))(t)
		must.Get(l.Near.Output("true"))(t)
		if _, err := l.Near.Start(Command{Args: []string{"/nonexistent"}, Stdout: &out}); err == nil {
			t.Fatal("started what is not there")
		}
		for range 2 {
			must.Do(t, l.Close())
		}
		if _, err := l.Near.Output("true"); err == nil {
			t.Fatal("a closed lab still runs programs")
		}
	}
	cycle()
	before, goroutines := descriptors(), runtime.NumGoroutine()
	for range 2 {
		cycle()
	}
	if !poll(func() bool { return descriptors() <= before && runtime.NumGoroutine() <= goroutines }) {
		t.Fatalf("descriptors: %d before, %d after; goroutines: %d before, %d after", before, descriptors(), goroutines,
			runtime.NumGoroutine())
	}
}
