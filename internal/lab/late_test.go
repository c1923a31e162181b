package lab

import (
	"math"
	"testing"
	"time"
)

// A bucket's lower bound is at most its values, and less by at most 1/32.
func TestTallyBuckets(t *testing.T) {
	for ns := int64(0); ns < int64(time.Minute); ns += 1 + ns/7 {
		least := tallyLowerBound(tallyBucket(ns))
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

// TestRounds checks the recorded stops of a thread while it waits and works.
func TestRounds(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, c := range []struct {
		name              string
		idle              int64 // since the last packet
		worked, until     int64 // when the work ended and when the wait after it should
		woken             int64
		stalls            int64
		stalled, longest  int64
		watched           int64
		behindWork, after int64
	}{
		{"on time", 0, 0, ms, ms, 0, 0, 0, ms, 0, 0},
		{"a late timer", 0, 0, ms, 2 * ms, 0, 0, ms, 2 * ms, 0, ms},
		{"a stop while it waits", 0, 0, ms, 21 * ms, 1, 20 * ms, 20 * ms, 21 * ms, 0, 20 * ms},
		{"a packet wakes it", 0, 0, ms, ms / 2, 0, 0, 0, ms / 2, 0, 0},
		{"a stop while it works", 0, 7 * ms, 8 * ms, 8 * ms, 1, 7 * ms, 7 * ms, 8 * ms, 7 * ms, 0},
		{"two stops", 0, 7 * ms, 8 * ms, 13 * ms, 2, 12 * ms, 7 * ms, 13 * ms, 7 * ms, 5 * ms},
		{"not in use", traffic, 0, math.MaxInt64, 900 * ms, 0, 0, 0, 0, 0, 0},
	} {
		r := rounds{used: -c.idle}
		inUse := r.worked(c.worked, c.idle == 0)
		behind := r.behind
		r.slept(c.woken, c.until, inUse)
		want := rounds{stalls{c.stalls, c.stalled, c.longest, c.watched}, c.woken, c.after, -c.idle}
		if r != want || behind != c.behindWork || inUse != (c.idle < traffic) {
			t.Errorf("%s: %+v, %d behind after the work; want %+v, %d", c.name, r, behind, want, c.behindWork)
		}
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

// Without packets the quantile is 0.
func TestTally_Empty(t *testing.T) {
	if got := lateOf(&tally{}, &stalls{}); got != (Late{}) {
		t.Errorf("%+v", got)
	}
}
