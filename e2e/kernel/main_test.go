//go:build linux

package kernel

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m, map[string]func() error{"path": pathProgram})
}
