package sockops

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/secret"
)

// supervisor is a child that outlives a killed steering process. It moves the program's processes to the parent
// cgroup and removes theirs. The kernel detaches the eBPF programs.
type supervisor struct {
	child *exec.Cmd
	alive *os.File // its other end returns end-of-file when this process has ended
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
	s.child.Env = secret.Without(os.Environ())
	// In a new session, signals to the terminal's or shell's process group do not end it.
	s.child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := s.child.Start(); err != nil {
		ours.Close()
		return nil, fmt.Errorf("start a supervisor: %w", err)
	}
	return s, nil
}

// end stops the supervisor and waits for it. The cgroup must be removed first.
func (s *supervisor) end() error {
	return errors.Join(s.alive.Close(), s.child.Wait())
}

func runSupervisor() {
	alive := os.NewFile(3, "the steering process")
	_, _ = alive.Read(make([]byte, 1)) // returns when the other end closes
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
