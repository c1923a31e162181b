//go:build linux

package hostile

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m, map[string]func() error{"confine": confineProgram, "vanish": vanishProgram,
		"wall-clock": wallClockProgram})
}
