//go:build unix

package hook

import (
	"os/exec"
	"syscall"
)

// asGroup starts a command as a process group of its own, which its context ends.
func asGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd) }
}

// killGroup kills a command that was started asGroup, and its children.
func killGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
