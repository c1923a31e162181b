package steer

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// supervisor is a child that outlives a steering process which is killed: it then moves
// the program's processes back to the parent cgroup and removes theirs. The eBPF programs
// need no such care: the kernel detaches them with the process that attached them.
type supervisor struct {
	child *exec.Cmd
	alive *os.File // its other end reads end-of-file when this process is gone
}

func (g *cgroup) supervise() (*supervisor, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	s := &supervisor{child: exec.Command("/proc/self/exe"), alive: ours}
	s.child.Args = []string{supervisorName, g.path, g.parent}
	s.child.ExtraFiles = []*os.File{theirs}
	s.child.Dir = "/"
	// A session of its own: what is sent to the terminal's or the shell's process group
	// must not end it together with the process that it watches.
	s.child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := s.child.Start(); err != nil {
		ours.Close()
		return nil, fmt.Errorf("start a supervisor: %w", err)
	}
	return s, nil
}

// end lets the supervisor go and waits for it; the cgroup has been removed before.
func (s *supervisor) end() error {
	return errors.Join(s.alive.Close(), s.child.Wait())
}

func runSupervisor() {
	alive := os.NewFile(3, "the steering process")
	_, _ = alive.Read(make([]byte, 1)) // nobody writes: it returns at the other end's end
	g := &cgroup{path: os.Args[1], parent: os.Args[2]}
	deadline := time.Now().Add(10 * time.Second)
	for {
		_, err := g.leave()
		if err == nil {
			err = g.remove()
		}
		if err == nil || errors.Is(err, os.ErrNotExist) || time.Now().After(deadline) {
			return
		}
	}
}
