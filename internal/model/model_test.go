package model

import (
	"math"
	"testing"
	"time"
)

const mbit = 1e6

func TestWindowsOfTheFoundingDocuments(t *testing.T) {
	for _, c := range []struct {
		rate float64
		rtt  time.Duration
		want int
	}{
		{100 * mbit, 12 * time.Millisecond, 104 * 1460},
		{100 * mbit, 40 * time.Millisecond, 344 * 1460},
		{1, time.Millisecond, 2 * 1460},
		{100e9, time.Second, MaxWindow / 2920 * 2920},
	} {
		if got := Window(BDP(c.rate, c.rtt), 1460); got != c.want {
			t.Errorf("%v bit/s x %v: window %d, want %d", c.rate, c.rtt, got, c.want)
		}
	}
	if got := BDP(45*mbit, 30*time.Millisecond); math.Abs(got-168750) > 1e-6 {
		t.Errorf("45 Mbit/s x 30 ms: %v bytes", got)
	}
	if got := Window(4*1460, 1460); got != 4*1460 {
		t.Errorf("a whole number of pairs was rounded to %d", got)
	}
}

func TestScale(t *testing.T) {
	for window, want := range map[int]int{1: 0, 65535: 0, 65536: 1, 131070: 1, 131071: 2, 16776960: 8, MaxWindow: 14,
		MaxWindow + 1: 14} {
		if got := Scale(window); got != want {
			t.Errorf("scale for %d is %d, want %d", window, got, want)
		}
	}
}

func TestRateAndRTTOfAWindow(t *testing.T) {
	if got := Rate(16000, 5*time.Millisecond); math.Abs(got-25.6*mbit) > 1 {
		t.Errorf("16 kB at 5 ms: %v bit/s", got)
	}
	if got := RTT(12500, 100*mbit); got != time.Millisecond {
		t.Errorf("12.5 kB at 100 Mbit/s tolerates %v", got)
	}
	if got := RTT(1<<30, 1e-9); got != math.MaxInt64 {
		t.Errorf("an endless round trip came out as %v", got)
	}
}

func TestGoodput(t *testing.T) {
	// RFC 6349 section 4.1.1: 94.9 and 949.2 Mbit/s; 941.5 with timestamps.
	for _, c := range []struct {
		rate         float64
		mss, headers int
		want         float64
	}{
		{100 * mbit, 1460, IPHeaders + 38, 94.93 * mbit},
		{1000 * mbit, 1448, IPHeaders + TimestampBytes + 38, 941.48 * mbit},
	} {
		got := Goodput(c.rate, c.mss, c.headers)
		if math.Abs(got-c.want) > 0.01*mbit {
			t.Errorf("goodput %v, want %v", got, c.want)
		}
		if back := LinkRate(got, c.mss, c.headers); math.Abs(back-c.rate) > 1 {
			t.Errorf("link rate %v, want %v", back, c.rate)
		}
	}
}

func TestTransferTime(t *testing.T) {
	rtt := 100 * time.Millisecond
	for _, c := range []struct {
		bytes, goodput float64
		low, high      float64 // seconds
	}{
		{14600, 100 * mbit, 0.1, 0.11},     // the initial window: one round
		{3 * 14600, 100 * mbit, 0.2, 0.21}, // two rounds
		{100e6, 100 * mbit, 8.3, 8.7},      // eight seconds and the start
		{1e6, 64e3, 125, 125.2},            // no slow start to speak of
	} {
		if got := TransferTime(c.bytes, c.goodput, rtt, 1460).Seconds(); got < c.low || got > c.high {
			t.Errorf("%v bytes at %v bit/s take %v s, want %v to %v", c.bytes, c.goodput, got, c.low, c.high)
		}
	}
	if got := TransferTime(1e18, 1e-9, rtt, 1460); got <= 0 {
		t.Errorf("an endless transfer takes %v", got)
	}
}
