//go:build linux

package bench

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m, map[string]func() error{"take-file": takeFileProgram, "send-file": sendFileProgram,
		"machine": machineProgram, "admission": admissionProgram, "short-connections": shortConnectionsProgram,
		"without-net-admin": withoutNetAdminProgram, "path-windows": pathWindowsProgram})
}
