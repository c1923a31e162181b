package model

import (
	"math"
	"testing"
	"time"
)

// The worked examples of RFC 6349, section by section.

func TestRFC6349MinimumWindows(t *testing.T) { // section 3.3.1
	for _, c := range []struct {
		rate float64 // bit/s
		rtt  time.Duration
		bits float64
		kB   float64
	}{
		{1.536 * mbit, 20 * time.Millisecond, 30_720, 3.84},
		{1.536 * mbit, 50 * time.Millisecond, 76_800, 9.60},
		{1.536 * mbit, 100 * time.Millisecond, 153_600, 19.20},
		{44.21 * mbit, 10 * time.Millisecond, 442_100, 55.26},
		{44.21 * mbit, 15 * time.Millisecond, 663_150, 82.89},
		{44.21 * mbit, 25 * time.Millisecond, 1_105_250, 138.16},
		{100 * mbit, 1 * time.Millisecond, 100_000, 12.50},
		{100 * mbit, 2 * time.Millisecond, 200_000, 25.00},
		{100 * mbit, 5 * time.Millisecond, 500_000, 62.50},
		{1000 * mbit, 100 * time.Microsecond, 100_000, 12.50},
		{1000 * mbit, 500 * time.Microsecond, 500_000, 62.50},
		{1000 * mbit, 1 * time.Millisecond, 1_000_000, 125.00},
		{10_000 * mbit, 50 * time.Microsecond, 500_000, 62.50},
		{10_000 * mbit, 300 * time.Microsecond, 3_000_000, 375.00},
		// An asymmetric line has a window for each direction.
		{5 * mbit, 90 * time.Millisecond, 450_000, 56.25},
		{0.64 * mbit, 90 * time.Millisecond, 57_600, 7.20},
	} {
		bytes := BDP(c.rate, c.rtt)
		if math.Abs(8*bytes-c.bits) > 0.5 || math.Abs(bytes/1000-c.kB) > 0.006 {
			t.Errorf("%v bit/s over %v: %.0f bit, %.2f kB; want %.0f and %.2f", c.rate, c.rtt, 8*bytes, bytes/1000, c.bits, c.kB)
		}
	}
}

func TestRFC6349MaximumThroughput(t *testing.T) { // section 4.1.1
	for _, c := range []struct {
		rate     float64
		overhead int
		frames   float64
		mbits    float64
	}{
		{44.21 * mbit, 8, 3664, 42.8}, // T3 without an FCS of its own
		{100 * mbit, 38, 8127, 94.9},
		{1000 * mbit, 38, 81274, 949.2},
		{10_000 * mbit, 38, 812743, 9492},
	} {
		frames := math.Floor(Frames(c.rate, 1500, c.overhead))
		if frames != c.frames {
			t.Errorf("%v bit/s carry %v frames/s, want %v", c.rate, frames, c.frames)
		}
		tcp := Goodput(c.rate, 1500-IPHeaders, IPHeaders+c.overhead)
		if byFrames := frames * (1500 - IPHeaders) * 8; tcp < byFrames || tcp > byFrames*(1+1/frames) {
			t.Errorf("%v bit/s carry %v of TCP, want %v by frames", c.rate, tcp, byFrames)
		}
		if math.Abs(tcp/mbit-c.mbits) > 0.0006*c.mbits {
			t.Errorf("%v bit/s carry %.2f Mbit/s of TCP, want %v", c.rate, tcp/mbit, c.mbits)
		}
	}
	// Not in the RFC: with timestamps a gigabit carries 941.5 Mbit/s.
	if got := Goodput(1000*mbit, 1500-IPHeaders-TimestampBytes, IPHeaders+TimestampBytes+
		38); math.Abs(got/mbit-941.5) > 0.05 {
		t.Errorf("with timestamps %.2f Mbit/s", got/mbit)
	}
}

func TestRFC6349Metrics(t *testing.T) {
	// Section 4.2.1: 102,000 bytes sent, 2,000 of them again: 98.03 %.
	if got := 100 * Efficiency(102_000, 2_000); math.Floor(100*got) != 9803 {
		t.Errorf("efficiency %.3f %%", got)
	}
	// Section 4.3.1: 25 ms idle, 32 ms during the transfer: 28 %.
	if got := 100 * BufferDelay(32*time.Millisecond, 25*time.Millisecond); math.Abs(got-28) > 1e-9 {
		t.Errorf("buffer delay %.3f %%", got)
	}
	if got := BufferDelay(25*time.Millisecond, 25*time.Millisecond); got != 0 {
		t.Errorf("without a queue %v", got)
	}
	// Section 4.1.2: 100 MB over 100 Mbit/s take 8.43 s at 94.9 Mbit/s.
	ideal := RTT(100_000_000, 94.92*mbit) // bytes at a rate, as a time
	if got := TransferTimeRatio(12*time.Second, ideal); math.Abs(got-1.424) > 0.001 {
		t.Errorf("ratio %v", got)
	}
}

func TestRFC6349Connections(t *testing.T) { // section 5.1
	bdp := BDP(500*mbit, 5*time.Millisecond)
	for window, want := range map[int]int{16_000: 20, 32_000: 10, 64_000: 5, 128_000: 3} {
		if got := Connections(bdp, window); got != want {
			t.Errorf("%d bytes need %d connections, want %d", window, got, want)
		}
	}
	if got := Connections(0, 0); got != 1 {
		t.Errorf("nothing needs %d connections", got)
	}
}

func TestGoodputBesideAcks(t *testing.T) {
	alone := Goodput(100*mbit, 1448, 52)
	if got := GoodputBesideAcks(100*mbit, 0, 1448, 52); got != alone {
		t.Errorf("with nothing the other way %v, alone %v", got, alone)
	}
	// 640 kbit/s up, 5 Mbit/s down: ACKs take a seventh of the uplink.
	up := GoodputBesideAcks(0.64*mbit, Goodput(5*mbit, 1448, 52), 1448, 52)
	if share := up / Goodput(0.64*mbit, 1448, 52); math.Abs(share-0.8646) > 0.001 {
		t.Errorf("the narrow direction keeps %.4f", share)
	}
	if got := GoodputBesideAcks(1, 1e9, 1448, 52); got != 0 {
		t.Errorf("nothing is left, not %v", got)
	}
}
