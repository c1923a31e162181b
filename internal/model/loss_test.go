package model

import (
	"math"
	"testing"
	"time"
)

func TestLossModels(t *testing.T) {
	const mss = 1460
	rtt := 100 * time.Millisecond
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got/want-1) > 0.02 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	// RFC 9438 section 5.1, table 1: CUBIC's and Reno's mean windows at 100 ms, in segments.
	perRTT := func(bps float64) float64 { return bps * 0.1 / 8 / mss }
	for _, c := range []struct{ p, reno, cubic float64 }{
		{1e-2, 12, 12}, {1e-3, 38, 38}, {1e-4, 120, 187}, {1e-5, 379, 1054}, {1e-6, 1200, 5926}, {1e-8, 12000, 187400},
	} {
		near("Mathis", perRTT(Mathis(mss, rtt, c.p)), math.Sqrt(1.5/c.p))
		if got := perRTT(Cubic(mss, rtt, c.p)); math.Abs(got/c.cubic-1) > 0.04 {
			t.Errorf("CUBIC's window at %v is %v, want %v", c.p, got, c.cubic)
		}
		if math.Abs(math.Sqrt(1.5/c.p)/c.reno-1) > 0.04 {
			t.Errorf("Reno's window at %v", c.p)
		}
	}
	// Without timeouts PFTK is Mathis's; with much loss timeouts rule.
	near("PFTK", PFTK(mss, rtt, 300*time.Millisecond, 1e-6, MaxWindow), Mathis(mss, rtt, 1e-6))
	if got := PFTK(mss, rtt, 300*time.Millisecond, 0.1, MaxWindow); got > 0.6*Mathis(mss, rtt, 0.1) {
		t.Errorf("PFTK at 10 %% of loss: %v", got)
	}
	near("PFTK's bound", PFTK(mss, rtt, time.Second, 1e-9, 65535), Rate(65535, rtt))
	near("BBR", BBR(100*mbit, 0.05), 95*mbit)
	if BBR(100*mbit, 0.25) != 0 || !math.IsInf(Cubic(mss, rtt, 0), 1) || !math.IsInf(Mathis(mss, rtt, 0), 1) {
		t.Error("bounds where there are none, or none where there are")
	}
}

func TestCubicWindow(t *testing.T) {
	if got := CubicWindow(1000, 0); math.Abs(got-700) > 1e-6 {
		t.Errorf("just reduced: %v", got)
	}
	if got := CubicWindow(1000, 9086*time.Millisecond); math.Abs(got-1000) > 1e-3 { // K = cbrt(300/0.4)
		t.Errorf("after K: %v", got)
	}
}

// Linux 6.18 advertised and had in flight these values in a lab of 1500-byte packets with timestamps.
func TestLinuxBuffers(t *testing.T) {
	for requested, want := range map[int]int{2 << 10: 1448, 4 << 10: 2896, 8 << 10: 8688, 16 << 10: 18824, 64 << 10: 80480,
		256 << 10: 326880,
		1 << 20:   1309920, 2 << 20: 2620032, 60041: 65535, 120 << 10: 131070} {
		if got := LinuxReceiveWindow(LinuxGranted(requested, 0), 1448); math.Abs(float64(got)/float64(want)-1) > 0.02 {
			t.Errorf("%d bytes asked: window %d, seen %d", requested, got, want)
		}
	}
	// Windows of a few segments and of small ones: `measure lab:rate=10mbit,rtt=20ms --receive-buffer` and --mss.
	for _, c := range []struct{ requested, mss, want int }{{2000, 1448, 1448}, {2920, 1448, 2896}, {4380, 1448, 2896},
		{2920, 1460, 2920}, {3500, 1460, 2920}, {4380, 1460, 2920}, {5000, 1460, 4380}, {5840, 1460, 5840},
		{7000, 1460, 7300}, {2920, 524, 2620}, {5840, 524, 5764}, {20000, 524, 19912}} {
		if got := LinuxReceiveWindow(LinuxGranted(c.requested, 0), c.mss); got != c.want {
			t.Errorf("%d bytes asked, an MSS of %d: window %d, seen %d", c.requested, c.mss, got, c.want)
		}
	}
	for _, c := range []struct{ granted, write, want int }{{131072, 8192, 80400}, {131072, 16384, 93400},
		{131072, 65536, 119000},
		{524288, 8192, 300000}, {524288, 16384, 314000}, {524288, 65536, 342000}, {32768, 16384, 32000},
		{32768, 65536, 60900}} {
		if got := LinuxInFlight(c.granted, c.write); math.Abs(float64(got)/float64(c.want)-1) > 0.1 {
			t.Errorf("%d bytes granted, writes of %d: %d in flight, seen %d", c.granted, c.write, got, c.want)
		}
	}
	// Goodput in Mbit/s of writes of 4 MiB, 6 s each, for 16 and 64 KiB asked.
	for _, c := range []struct{ rate, rtt, queue, small, large float64 }{{20, 0.1, 3, 12.5, 13}, {20, 0.1, 0.3, 4.7, 6.4},
		{20, 0.1, 1, 9.1, 9}, {10, 0.05, 1, 5.7, 8.1},
		{5, 0.15, 2, 2.4, 4.3}} {
		bdp := c.rate / 8 * c.rtt * 1e6
		for granted, seen := range map[float64]float64{32768: c.small, 131072: c.large} {
			if got := LinuxOverrun(granted, bdp, c.queue*bdp) * 8 / c.rtt / 1e6; math.Abs(got/seen-1) > 0.35 {
				t.Errorf("%v with %v granted: %.3g Mbit/s, seen %v", c, granted, got, seen)
			}
		}
	}
	if got := LinuxGranted(8<<20, 4<<20); got != 8<<20 {
		t.Errorf("clipped to %d", got)
	}
}

func TestSlowStartRounds(t *testing.T) {
	for segments, want := range map[int]int{0: 0, 1: 1, 10: 1, 11: 2, 30: 2, 31: 3, 70: 3, 71: 4} {
		if got := SlowStartRounds(float64(segments*1460), 1460); got != want {
			t.Errorf("%d segments take %d rounds, want %d", segments, got, want)
		}
	}
}
