//go:build !linux

package sockops

import (
	"context"
	"os/exec"
)

func run(context.Context, *exec.Cmd, Config) (*Report, error) {
	return nil, &NotSupported{Feature: "eBPF in cgroups (Linux)"}
}

// runSupervisor does nothing: steering needs Linux.
func runSupervisor() {}
