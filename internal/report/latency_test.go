package report

import (
	"testing"
	"time"
)

func TestTrimmedMean_DropsTheSlowestTwentieth(t *testing.T) {
	times := []time.Duration{time.Hour}
	for range 19 {
		times = append(times, 40*time.Millisecond)
	}
	for n, want := range map[int]time.Duration{20: 40 * time.Millisecond, 1: time.Hour} {
		if got := trimmedMean(times[:n]); got != want {
			t.Errorf("of %d: %s, not %s", n, got, want)
		}
	}
}
