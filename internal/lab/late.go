package lab

import (
	"math/bits"
	"time"
)

// Late is how much later than an exact link one direction did what it had to do. Times
// are counted for each packet: from when it could have been taken out of its host's device
// and handed to the other host until it was, both waits together. A thread that had no
// packet in hand shows as late too: while there is traffic it wakes once a millisecond.
type Late struct {
	P50, P99, Max time.Duration
	// Stalls counts the times that the direction's thread did not run for leastStall or
	// more when it should have, and Stalled is their sum.
	Stalls  int64
	Stalled time.Duration
	// Watched is for how long lateness was looked after: while packets were under way
	// and a second longer.
	Watched time.Duration
	Packets int64
}

const (
	// leastStall is what counts as one. A thread of the fair class may wait a slice of
	// 3 ms (Linux's base slice) for another; what is below comes from timers and wakes.
	leastStall = 2 * time.Millisecond
	// mostStalled is the share of the time that a link may have stood still and still be
	// believed: with more, what it carries is visibly less than its rate.
	mostStalled = 0.005
	// mostLate (or this share of the round trip) is what the 99th percentile may be late.
	mostLate      = 250 * time.Microsecond
	mostLateShare = 0.05
	// traffic is how long after the last packet a link counts as in use.
	traffic = int64(time.Second)
)

// Believable says whether a link of that round trip was exact enough for what was
// measured on it to count.
func (l Late) Believable(rtt time.Duration) bool {
	return l.Stalled.Seconds() <= mostStalled*l.Watched.Seconds() &&
		l.P99 <= max(mostLate, time.Duration(mostLateShare*float64(rtt)))
}

// Worse has the larger of each figure.
func (l Late) Worse(other Late) Late {
	return Late{max(l.P50, other.P50), max(l.P99, other.P99), max(l.Max, other.Max), max(l.Stalls, other.Stalls),
		max(l.Stalled, other.Stalled), max(l.Watched, other.Watched), max(l.Packets, other.Packets)}
}

// Account is what a lab says of itself: how late either direction was, and the least
// round trip that two hosts of this machine can have, as measured when the lab started.
type Account struct {
	Up, Down Late
	RTT      time.Duration // asked for
	Floor    time.Duration // 0: the hosts do not echo
	At       time.Duration // when the link's counters were read, by its own clock
}

// Worse is the worse of the two directions, figure by figure.
func (a Account) Worse() Late { return a.Up.Worse(a.Down) }

// Believable says whether both directions are.
func (a Account) Believable() bool { return a.Up.Believable(a.RTT) && a.Down.Believable(a.RTT) }

// stalls counts, in nanoseconds, when a thread did not run although it should have.
type stalls struct{ count, total, longest, watched int64 }

// waited counts a thread's wait, or its work, that was longer than it should have been.
func (s *stalls) waited(late int64) {
	s.longest = max(s.longest, late)
	if late >= int64(leastStall) {
		s.count++
		s.total += late
	}
}

// rounds is a thread's account of its rounds of work and waiting. Times are in nanoseconds.
type rounds struct {
	stalls
	since  int64 // when this round began
	behind int64 // how late that was
	used   int64 // when there was a packet last
}

// worked ends the work of a round at now and reports whether the link is in use.
func (r *rounds) worked(now int64, packets bool) (inUse bool) {
	if packets {
		r.used = r.since
	}
	inUse = now-r.used < traffic
	r.next(now, now-r.since, inUse)
	return inUse
}

// slept ends a wait at woken that should have ended at until.
func (r *rounds) slept(woken, until int64, inUse bool) {
	r.next(woken, max(0, woken-until), inUse)
}

func (r *rounds) next(now, late int64, inUse bool) {
	r.waited(late)
	if inUse {
		r.watched += now - r.since
	}
	r.behind = late
	r.since = now
}

// tally counts packets by how late they were. Its buckets are microseconds up to 64, then
// 32 to each doubling: 3 % wide.
type tally struct {
	counts  [tallyBuckets]int64
	packets int64
	most    int64 // ns
}

const (
	tallyFine    = 32
	tallyBuckets = tallyFine * 24 // up to five minutes
)

func tallyBucket(ns int64) int {
	us := uint64(max(0, ns)) / 1000
	shift := max(0, bits.Len64(us)-6)
	return min(tallyFine*shift+int(us>>shift), tallyBuckets-1)
}

// tallyLeast is the least time, in nanoseconds, that goes into a bucket.
func tallyLeast(bucket int) int64 {
	shift := max(0, bucket/tallyFine-1)
	return int64(bucket-tallyFine*shift) << shift * 1000
}

// add counts n packets that were late by so many nanoseconds.
func (t *tally) add(late int64, n int) {
	t.counts[tallyBucket(late)] += int64(n)
	t.packets += int64(n)
	t.most = max(t.most, late)
}

func (t *tally) quantile(share float64) time.Duration {
	left := int64(share * float64(t.packets))
	for bucket, n := range t.counts {
		left -= n
		if left < 0 {
			return time.Duration(min(tallyLeast(bucket), t.most))
		}
	}
	return time.Duration(t.most)
}

// lateOf puts together what a direction's packets and its thread have to tell.
func lateOf(t *tally, s *stalls) Late {
	return Late{t.quantile(0.5), t.quantile(0.99), time.Duration(max(t.most, s.longest)), s.count, time.Duration(s.total),
		time.Duration(s.watched), t.packets}
}
