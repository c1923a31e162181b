package model

import (
	"math"
	"testing"
	"time"
)

func TestService(t *testing.T) {
	const ms = time.Millisecond
	lan := NewService(ms, 10e6, 10e6, 1460, 40, 38) // Ethernet of 1997
	lan.HalfDuplex = true
	delayed := lan
	delayed.DelayedAck = 200 * ms
	wan := NewService(40*ms, 100e6, 100e6, 1460, 40, 0)
	for _, c := range []struct {
		name   string
		s      Service
		window int
		mbit   float64
	}{
		// One segment of 1230.4 µs and the other's acknowledgement of 62.4 µs share the line.
		{"two segments", lan, 2920, 2920 * 8 / 3.0232e3}, {"four fill it", lan, 5840, 9.2574},
		{"two, delayed", delayed, 2920, 2920 * 8 / 3.5232e3},
		{"less than two, delayed: abysmal", delayed, 2919, 2918 * 8 / (1e3 + 2*1229.56 + 62.4 + 200e3)},
		{"half a path", wan, 172 * 1460, 172 * 1460 * 8 / 40.2432e3},
		{"part segments are not sent", wan, 172*1460 + 1459, 172 * 1460 * 8 / 40.2432e3},
		{"a full path", wan, 344 * 1460, 97.333},
		{"no rate", Service{RTT: 10 * ms}, 65535, 44 * 1460 * 8 / 10e3},
	} {
		if got := c.s.Goodput(c.window, 1460) / 1e6; math.Abs(got/c.mbit-1) > 0.002 {
			t.Errorf("%s: %.4g Mbit/s, want %.4g", c.name, got, c.mbit)
		}
	}
	for _, s := range []Service{lan, delayed, wan, NewService(90*ms, 28.8e3, 33.6e3, 536, 40, 8)} {
		window := s.Window(1460, 0.95, 0)
		if window%2920 != 0 || s.Goodput(window, 1460) < 0.949*s.Capacity(1460) {
			t.Errorf("%+v: a window of %d gives %v", s, window, s.Goodput(window, 1460)/s.Capacity(1460))
		}
		if less := window - 2920; less > 0 && s.Goodput(less, 1460) >= 0.95*s.Capacity(1460) {
			t.Errorf("%+v: %d would do", s, less)
		}
	}
}
