//go:build !linux

package lab

import (
	"context"
	"errors"
	"os"
)

type engine struct{}

var errLinuxOnly error = linuxOnlyError{}

// linuxOnlyError reports that this system has no lab.
type linuxOnlyError struct{}

func (linuxOnlyError) Error() string { return "a lab needs Linux's network namespaces and TUN devices" }

func (linuxOnlyError) Unwrap() error { return errors.ErrUnsupported }

// Try returns the alternatives.
func (linuxOnlyError) Try() string {
	return "fullpipe serve on a second host, or the lab in WSL 2 or a Linux virtual machine"
}

func startEngine(context.Context, Config) (*engine, error) { return nil, errLinuxOnly }

func engineMain() {}

func linkMain() {}

func (e *engine) close() error                            { return errLinuxOnly }
func (e *engine) ask(request) (reply, error)              { return reply{}, errLinuxOnly }
func (e *engine) start(string, Command) (*Process, error) { return nil, errLinuxOnly }

func signalNumber(os.Signal) (int, error) { return 0, errLinuxOnly }

func atFar(context.Context, []string, []string, []byte) (stdout, stderr []byte, status int, err error) {
	return nil, nil, 0, errLinuxOnly
}

func run(context.Context, Run) (int, error) { return 0, errLinuxOnly }
