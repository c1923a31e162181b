package bulk

import (
	"testing"
	"time"
)

// TestStarved checks that a thread's run-queue wait is attributed to other programs if it is long or if the thread
// never sleeps.
func TestStarved(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name              string
		ran, waited, span time.Duration
		turns             int64
		want              time.Duration
	}{
		{"a quiet virtual machine, 100 Mbit/s", 6 * ms, 19 * ms, 100 * ms, 960, 0},
		{"a busy loop on the same core", 10 * ms, 60 * ms, 100 * ms, 30, 60 * ms},
		{"a group's share used up", 50 * ms, 50 * ms, 100 * ms, 20, 50 * ms},
		{"two that never sleep", 50 * ms, 50 * ms, 100 * ms, 1000, 50 * ms},
		{"bursts between long waits", 5 * ms, 60 * ms, 100 * ms, 300, 60 * ms},
		{"one long wait", ms, 40 * ms, 100 * ms, 1, 40 * ms},
		{"a wait that began before", 0, 150 * ms, 100 * ms, 2, 150 * ms},
		{"asleep", 0, 0, 100 * ms, 0, 0},
	} {
		if got := starvedOf(c.ran, c.waited, c.turns, c.span); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
