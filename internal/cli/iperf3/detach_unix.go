//go:build unix

package iperf3

import (
	"os/exec"
	"syscall"
)

// newSession starts a command in a session of its own, so that it outlives the terminal.
func newSession(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return nil
}
