//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/lab"
)

// programVariable makes the test binary one of programs instead, so that a lab can run
// it at either end.
const programVariable = "FULLPIPE_E2E_PROGRAM"

// programs are what the test binary can be in a lab.
var programs = map[string]func() error{"serve": serveProgram, "transfer": transferProgram, "path": pathProgram,
	"cells":     cellsProgram,
	"take-file": takeFileProgram, "send-file": sendFileProgram,
	"sink": sinkProgram, "source": sourceProgram, "exchanges": exchangesProgram, "steady": steadyProgram,
	"spin": spinProgram, "machine": machineProgram,
	"vanish": vanishProgram, "confine": confineProgram, "wall-clock": wallClockProgram,
	"admission": admissionProgram, "http2-server": http2ServerProgram, "http2-client": http2ClientProgram,
	"short-connections": shortConnectionsProgram, "without-net-admin": withoutNetAdminProgram,
	"path-windows": pathWindowsProgram}

func TestMain(m *testing.M) {
	lab.Engine()
	if name := os.Getenv(programVariable); name != "" {
		if err := programs[name](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	status := m.Run()
	if path, err := fullpipe(); built && err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	if path, err := hostileOnce(); hostileBuilt && err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(status)
}
