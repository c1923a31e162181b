package iperf3

import (
	"fmt"
	"os/exec"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// newSession needs a system with sessions.
func newSession(*exec.Cmd) error {
	return fmt.Errorf("a server in the background: %w", socket.ErrNotSupported)
}
