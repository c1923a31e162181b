package lab

import (
	"testing"
	"time"
)

// A bucket's least time is at most what went into it, and 1/32 less at most.
func TestTallyBuckets(t *testing.T) {
	for ns := int64(0); ns < int64(time.Minute); ns += 1 + ns/7 {
		least := tallyLeast(tallyBucket(ns))
		if least > ns || ns-least > max(1000, ns/32) {
			t.Fatalf("%d ns went to the bucket of %d", ns, least)
		}
	}
	if got := tallyBucket(int64(24 * time.Hour)); got != tallyBuckets-1 {
		t.Errorf("a day goes to bucket %d", got)
	}
}

func TestLateness(t *testing.T) {
	var packets tally
	packets.add(20_000, 980)
	packets.add(400_000, 15)
	packets.add(7_000_000, 5)
	s := stalls{watched: int64(time.Second)}
	for _, late := range []int64{30_000, 1_999_999, 2_000_000, 7_500_000} {
		s.waited(late)
	}
	got := lateOf(&packets, &s)
	if got.P50 != 20*time.Microsecond || got.P99 < 387*time.Microsecond || got.P99 > 400*time.Microsecond ||
		got.Max != 7500*time.Microsecond || got.Stalls != 2 || got.Stalled != 9500*time.Microsecond || got.Packets != 1000 {
		t.Errorf("%+v", got)
	}
}

func TestBelievable(t *testing.T) {
	const second = time.Second
	for _, c := range []struct {
		late Late
		rtt  time.Duration
		want bool
	}{
		{Late{}, 0, true},
		{Late{P99: 250 * time.Microsecond, Watched: second}, time.Millisecond, true},
		{Late{P99: 260 * time.Microsecond, Watched: second}, time.Millisecond, false},
		{Late{P99: 2 * time.Millisecond, Watched: second}, 40 * time.Millisecond, true},
		{Late{P99: 2100 * time.Microsecond, Watched: second}, 40 * time.Millisecond, false},
		{Late{Stalls: 1, Stalled: 5 * time.Millisecond, Watched: second}, 40 * time.Millisecond, true},
		{Late{Stalls: 1, Stalled: 6 * time.Millisecond, Watched: second}, 40 * time.Millisecond, false},
	} {
		if got := c.late.Believable(c.rtt); got != c.want {
			t.Errorf("%+v at %v: %v", c.late, c.rtt, got)
		}
	}
}

// The quantile of nothing is nothing.
func TestNoPackets(t *testing.T) {
	if got := lateOf(&tally{}, &stalls{}); got != (Late{}) {
		t.Errorf("%+v", got)
	}
}
