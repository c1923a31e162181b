//go:build linux

package interop

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

func TestManyTestsAtOnce(t *testing.T) {
	if complete, bytes := harness.RunParallelTests(t, 100, 100e3, time.Second); complete != 100 || bytes == 0 {
		t.Errorf("%d of 100 tests completed, %d bytes", complete, bytes)
	}
}

func TestShortSoak(t *testing.T) {
	if g := harness.Soak(t, 50, 300); g.Failed > 0 || g.Goroutines > 0 || g.Descriptors > 0 {
		t.Errorf("after 300 tests: %+v", g)
	}
}
