package transfer

import (
	"math"
	"testing"
	"time"
)

func TestBurst(t *testing.T) {
	const rtt = 20 * time.Millisecond
	until := func(first, high, low float64) func(float64) float64 {
		return func(t float64) float64 {
			if t < first {
				return high
			}
			return low
		}
	}
	for name, c := range map[string]struct {
		length time.Duration
		rate   func(float64) float64
		ok     bool
		end    time.Duration
		steady float64
	}{
		"a bucket of a fifth of a second": {2 * time.Second, until(0.2, 5e6, 1.25e6), true, 200 * time.Millisecond, 10e6},
		"a steady rate":                   {2 * time.Second, until(0, 0, 1.25e6), false, 0, 0},
		"a rate that varies by a fifth": {2 * time.Second, func(t float64) float64 {
			return 1.25e6 * (1 + 0.2*math.Cos(20*t))
		}, false, 0, 0},
		"a burst that takes most of it": {2 * time.Second, until(1.3, 5e6, 1.25e6), true, 1300 * time.Millisecond, 0},
		"a start that is slow":          {2 * time.Second, until(0.4, 0.2e6, 1.25e6), false, 0, 0},
		"a stall in the second half": {2 * time.Second, func(t float64) float64 {
			if t > 1.2 && t < 1.5 {
				return 0
			}
			return 1.25e6
		}, false, 0, 0},
		"too short": {200 * time.Millisecond, until(0.05, 5e6, 1.25e6), false, 0, 0},
	} {
		got, ok := delivering(c.length, rtt, c.rate).Burst()
		switch {
		case ok != c.ok:
			t.Errorf("%s: %+v, %v", name, got, ok)
		case ok && (got.End-c.end).Abs() > 100*time.Millisecond:
			t.Errorf("%s: ends at %v, want %v", name, got.End, c.end)
		case ok && c.steady == 0 && got.SteadyBps > 0:
			t.Errorf("%s: %.3g bit/s after it", name, got.SteadyBps)
		case ok && c.steady > 0 && math.Abs(got.SteadyBps/c.steady-1) > 0.03:
			t.Errorf("%s: %.3g bit/s after it, want %.3g", name, got.SteadyBps, c.steady)
		}
	}
}
