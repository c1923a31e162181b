package model

import (
	"math"
	"testing"
)

// The goodput in Mbit/s that Linux 6.18 reached at 1 Gbit/s and 100 ms with largest sizes of net.ipv4.tcp_wmem:
// `sysctl -w net.ipv4.tcp_wmem="4096 16384 SIZE"`, then `measure` without buffers, steady goodput.
func TestLinuxAutomaticInFlight(t *testing.T) {
	for largest, seen := range map[int]float64{256 << 10: 23.5, 1 << 20: 69.6, 4 << 20: 238, 8 << 20: 459} {
		got := float64(LinuxAutomaticInFlight(largest)) * 8 / 0.1 / 1e6
		if math.Abs(got/seen-1) > 0.05 {
			t.Errorf("%d bytes: %.3g Mbit/s, seen %v", largest, got, seen)
		}
	}
}

func TestLinuxScaledWindow(t *testing.T) {
	for _, c := range []struct{ granted, scale, want int }{
		{6291456, 1, 3145728}, {6291456, 2, 4718592}, {6291456, 0, 6291456}, {6291456, -1, 3145728},
		{6291456, 99, 6291456}, {6291456, -99, 0},
	} {
		if got := LinuxScaledWindow(c.granted, c.scale); got != c.want {
			t.Errorf("%d bytes, tcp_adv_win_scale %d: %d, want %d", c.granted, c.scale, got, c.want)
		}
	}
}
