package probe

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestHint_BlockedDataPort(t *testing.T) {
	for separate, want := range map[bool]string{true: "--tunnel", false: "start fullpipe serve"} {
		err := fmt.Errorf("measure: %w", &dataConnectionError{"192.0.2.1:40000", syscall.ECONNREFUSED, separate})
		if got := hint(Simplify(err, time.Second)); !strings.Contains(got, want) {
			t.Errorf("separate port %v: %q, want %q in it", separate, got, want)
		}
	}
}
