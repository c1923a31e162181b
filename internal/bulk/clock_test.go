package bulk

import (
	"testing"
	"time"
)

func TestClockStep(t *testing.T) {
	now := time.Now()
	later := now.Add(3 * time.Second) // moves both clocks
	if step := clockStep(now, later); step != 0 {
		t.Errorf("nobody set a clock: %v", step)
	}
	for wall, want := range map[time.Duration]time.Duration{5 * time.Second: 2 * time.Second, 0: -3 * time.Second,
		3*time.Second + 900*time.Microsecond: 0} {
		if step := stepOf(wall, 3*time.Second); step != want {
			t.Errorf("%v by the wall clock in 3 s: a step of %v, want %v", wall, step, want)
		}
	}
	if step := clockStep(now, time.Now()); step != 0 {
		t.Errorf("nobody set a clock: %v", step)
	}
}
