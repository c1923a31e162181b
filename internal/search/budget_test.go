package search

import (
	"testing"
	"time"
)

// A modem's transfers last for 25 segments, others for 60: a direction takes five minutes at
// 14.4 kbit/s, not twelve.
func TestModemsTakeFewerSegments(t *testing.T) {
	for _, c := range []struct {
		bps      float64
		segments float64 // of a transfer, startup apart
		budget   time.Duration
	}{{14.4e3, 25, 310 * time.Second}, {28.8e3, 25, 160 * time.Second}, {64e3, 54, 160 * time.Second},
		{256e3, 60, 45 * time.Second}} {
		cfg := Config{MSS: 1460, CapacityBps: c.bps * 1460 / 1500}
		segment := float64(cfg.MSS) * 8 / cfg.CapacityBps
		cfg.RTT = time.Duration((0.1 + segment) * float64(time.Second))
		cfg.Knee = cfg.CapacityBps / 8 * cfg.RTT.Seconds()
		rounds := 2 * cfg.RTT.Seconds() // no slow start is longer on such a path
		got := (cfg.Length(0).Seconds() - rounds) / segment
		if got < c.segments-1 || got > c.segments+1 {
			t.Errorf("%.0f bit/s: a transfer lasts for %.1f segments, want %.0f", c.bps, got, c.segments)
		}
		if got := cfg.Budget().Time; got > c.budget {
			t.Errorf("%.0f bit/s: a budget of %v, want %v at most", c.bps, got, c.budget)
		}
	}
}
