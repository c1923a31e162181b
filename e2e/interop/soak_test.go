//go:build linux

package interop

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

func TestManyTestsAtOnce(t *testing.T) {
	const tests, write = 100, 4096 // each test makes several writes at 100 kbit/s
	complete, bytes := harness.RunParallelTests(t, tests, 100e3, time.Second)
	if complete != tests || bytes < tests*write || bytes > tests*6*write {
		t.Errorf("%d of %d tests completed, %d bytes", complete, tests, bytes)
	}
}

func TestShortSoak(t *testing.T) {
	if g := harness.Soak(t, 50, 300); g.Failed > 0 || g.Goroutines > 0 || g.Descriptors > 0 {
		t.Errorf("after 300 tests: %+v", g)
	}
}
