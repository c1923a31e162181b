//go:build linux

package harness

import (
	"fmt"
	"maps"
	"os"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// ProgramVariable names the environment variable that makes a test binary run one of its helper programs
// instead of its tests, so that a lab can run it at either end.
const ProgramVariable = "FULLPIPE_E2E_PROGRAM"

// Main runs a package's tests, the lab's engine or a helper program: one of this package's or of programs.
func Main(m *testing.M, programs map[string]func() error) {
	lab.Engine()
	if name := os.Getenv(ProgramVariable); name != "" {
		all := map[string]func() error{"serve": serveProgram, "transfer": transferProgram, "cells": cellsProgram,
			"sink": sinkProgram, "source": sourceProgram, "exchanges": exchangesProgram, "steady": pacedProgram,
			"spin": spinProgram, "http2-server": http2ServerProgram, "http2-client": http2ClientProgram}
		maps.Copy(all, programs)
		run, known := all[name]
		if !known {
			fmt.Fprintf(os.Stderr, "%s=%s: no such helper program\n", ProgramVariable, name)
			os.Exit(1)
		}
		if err := run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	remove := testenv.OwnState()
	status := m.Run()
	remove()
	if buildDir != "" {
		os.RemoveAll(buildDir)
	}
	os.Exit(status)
}
