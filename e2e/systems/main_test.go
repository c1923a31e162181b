//go:build linux

package systems

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m, nil)
}
