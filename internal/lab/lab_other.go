//go:build !linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
)

type engine struct{}

var errLinuxOnly = fmt.Errorf("a lab needs Linux's network namespaces and TUN devices: %w", errors.ErrUnsupported)

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
