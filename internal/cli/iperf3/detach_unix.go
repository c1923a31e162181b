//go:build unix

package iperf3

import (
	"os/exec"
	"syscall"
)

// leaveSession makes a command outlive the terminal that it is started from.
func leaveSession(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return nil
}
