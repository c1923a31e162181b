package bulk

import (
	"testing"
	"time"
)

// TestBatches runs a receiver at several rates: only beyond 8 Gbit/s it waits for batches, and not when it slows down.
func TestBatches(t *testing.T) {
	set := 1
	b := batches{set: func(bytes int, _ float64) bool {
		set = bytes
		return true
	}}
	now := time.Duration(0)
	run := func(bps float64, d time.Duration) {
		for end := now + d; now < end; {
			full := time.Duration(float64(set)/bps*1e9) + 10*time.Microsecond
			wait := b.timeout(full)
			now += wait
			b.took(int(bps*wait.Seconds()), true, now)
		}
	}
	for _, phase := range []struct {
		name string
		bps  float64
		want int
	}{
		{"1 Gbit/s", 0.125e9, 1}, {"6 Gbit/s", 0.75e9, 1}, {"80 Gbit/s", 10e9, batchBytes},
		{"6 Gbit/s after more", 0.75e9, batchBytes}, {"1 Gbit/s after more", 0.125e9, 1}, {"10 Gbit/s", 1.25e9, batchBytes},
	} {
		run(phase.bps, 100*time.Millisecond)
		if set != phase.want || b.on != (set > 1) {
			t.Errorf("%s: it waits for %d bytes, on %v", phase.name, set, b.on)
		}
	}
}

// TestBatches_Refused: where the socket refuses, the receiver waits for each packet.
func TestBatches_Refused(t *testing.T) {
	asked := 0
	b := batches{set: func(int, float64) bool {
		asked++
		return false
	}}
	for now := time.Duration(0); now < time.Second; now += 100 * time.Microsecond {
		b.took(1<<20, true, now)
	}
	if b.on || asked == 0 || asked > 100 {
		t.Errorf("on %v, asked %d times in a second", b.on, asked)
	}
	if got := b.timeout(poll); got != poll {
		t.Errorf("waits %v at most", got)
	}
}
