package iperf3

import (
	"fmt"
	"os/exec"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// leaveSession is of systems with sessions.
func leaveSession(*exec.Cmd) error {
	return fmt.Errorf("a server in the background: %w", socket.ErrNotSupported)
}
