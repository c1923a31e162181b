package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// onThread runs f on a thread that is discarded afterwards, whatever namespace f left it in.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

// spawn starts a program for the lab's user.
func (e *inside) spawn(r request, files []int) (int, error) {
	pid, err := e.launch(r, files)
	if err == nil {
		e.children[pid] = r.ID
		e.pids[r.ID] = pid
	}
	return pid, err
}

// launch starts a program at one end. The caller locks e.mu until the PID is recorded.
func (e *inside) launch(r request, files []int) (int, error) {
	h := e.hosts[r.End]
	if h == nil || len(files) != 3 || len(r.Args) == 0 {
		return 0, errors.New("malformed start")
	}
	path, err := lookUp(r.Args[0], r.Dir)
	if err != nil {
		return 0, err
	}
	attr := &syscall.ProcAttr{Dir: r.Dir, Env: environment(os.Environ(), e.path, r.End, h.stack, r.Env),
		Files: []uintptr{uintptr(files[0]), uintptr(files[1]), uintptr(files[2])},
		Sys:   &syscall.SysProcAttr{Setpgid: r.OwnGroup}}
	var pid int
	err = onThread(func() error {
		if err := unix.Setns(h.namespace, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("entering the %s end: %w", r.End, err)
		}
		pid, err = syscall.ForkExec(path, r.Args, attr)
		return err
	})
	if err != nil {
		return 0, &NotRun{r.Args[0], exitNotRun(err), err}
	}
	select {
	case e.spawned <- struct{}{}:
	default:
	}
	return pid, nil
}

func lookUp(name, dir string) (string, error) {
	if dir != "" && strings.Contains(name, "/") && !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	path, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		var inner *exec.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return "", &NotRun{name, exitNotRun(err), err}
	}
	return path, nil
}

func exitNotRun(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return 127
	}
	return 126
}

// reap waits for all children, including orphans: the engine is the first process of its namespace. It releases a
// PID only under e.mu, so that kill never signals another process.
func (e *inside) reap() {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			<-e.spawned
			continue
		case err != nil:
			continue
		}
		e.mu.Lock()
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err != nil || pid == 0 {
			e.mu.Unlock()
			continue
		}
		if e.link != nil && pid == e.link.pid {
			os.Exit(1) // a lab needs its link
		}
		code := status.ExitStatus()
		if status.Signaled() {
			code = 128 + int(status.Signal())
		}
		if ended := e.local[pid]; ended != nil {
			delete(e.local, pid)
			ended <- code
		}
		if id, ours := e.children[pid]; ours {
			delete(e.children, pid)
			delete(e.pids, id)
			e.answer(reply{ID: id, Status: code})
		}
		e.mu.Unlock()
	}
}
