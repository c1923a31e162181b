package lab

import (
	"math/bits"
	"time"
)

// Late describes the lateness of one direction against an exact link. The time of a packet is its wait in its
// host's device plus its wait for delivery, each beyond what an exact link needs. A thread without packets counts
// too: while there is traffic it wakes up once a millisecond.
type Late struct {
	P50, P99, Max time.Duration
	// Stalls counts the times that the direction's thread was at least minStall late to run. Stalled is their sum.
	Stalls  int64
	Stalled time.Duration
	// Watched is the observed time: packets were in flight then or up to 1 s before.
	Watched time.Duration
	Packets int64
}

const (
	// minStall is the least stall. A thread of the fair class may wait a 3 ms slice (Linux's base slice) for another;
	// shorter delays come from timers and wake-ups.
	minStall = 2 * time.Millisecond
	// maxStalled is the largest share of time that a link may stall. Above it the link visibly carries less than its
	// rate.
	maxStalled = 0.005
	// maxLate, or this share of the RTT, limits the 99th percentile of lateness.
	maxLate      = 250 * time.Microsecond
	maxLateShare = 0.05
	// traffic is how long after its last packet a link counts as in use.
	traffic = int64(time.Second)
)

// Believable reports whether a link with that RTT was exact enough for measurements.
func (l Late) Believable(rtt time.Duration) bool {
	return l.Stalled.Seconds() <= maxStalled*l.Watched.Seconds() &&
		l.P99 <= max(maxLate, time.Duration(maxLateShare*float64(rtt)))
}

// Worse returns the larger of each value.
func (l Late) Worse(other Late) Late {
	return Late{max(l.P50, other.P50), max(l.P99, other.P99), max(l.Max, other.Max), max(l.Stalls, other.Stalls),
		max(l.Stalled, other.Stalled), max(l.Watched, other.Watched), max(l.Packets, other.Packets)}
}

// Lateness describes a lab's exactness: how late each direction was, and the least RTT of two hosts on this machine,
// measured when the lab started.
type Lateness struct {
	Up, Down Late
	RTT      time.Duration // configured
	Floor    time.Duration // 0: the hosts do not answer echoes
	At       time.Duration // when the link's counters were read, by its own clock
}

// Worse returns the larger value of the two directions.
func (a Lateness) Worse() Late { return a.Up.Worse(a.Down) }

// Believable reports whether both directions are.
func (a Lateness) Believable() bool { return a.Up.Believable(a.RTT) && a.Down.Believable(a.RTT) }

// stalls counts a thread's delays, in ns.
type stalls struct{ count, total, longest, watched int64 }

// waited counts a thread's wait or work that took too long.
func (s *stalls) waited(late int64) {
	s.longest = max(s.longest, late)
	if late >= int64(minStall) {
		s.count++
		s.total += late
	}
}

// rounds records a thread's rounds of work and waiting, in ns.
type rounds struct {
	stalls
	since  int64 // start of this round
	behind int64 // its lateness
	used   int64 // last packet
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

// tally counts packets by lateness. Its buckets are 1 µs wide up to 64 µs, then 32 for each doubling: 3 % wide.
type tally struct {
	counts  [tallyBuckets]int64
	packets int64
	max     int64 // ns
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

// tallyLowerBound returns the lower bound of a bucket in ns.
func tallyLowerBound(bucket int) int64 {
	shift := max(0, bucket/tallyFine-1)
	return int64(bucket-tallyFine*shift) << shift * 1000
}

// add counts n packets with this lateness in ns.
func (t *tally) add(late int64, n int) {
	t.counts[tallyBucket(late)] += int64(n)
	t.packets += int64(n)
	t.max = max(t.max, late)
}

func (t *tally) quantile(share float64) time.Duration {
	left := int64(share * float64(t.packets))
	for bucket, n := range t.counts {
		left -= n
		if left < 0 {
			return time.Duration(min(tallyLowerBound(bucket), t.max))
		}
	}
	return time.Duration(t.max)
}

// lateOf combines the lateness of a direction's packets and of its thread.
func lateOf(t *tally, s *stalls) Late {
	return Late{t.quantile(0.5), t.quantile(0.99), time.Duration(max(t.max, s.longest)), s.count, time.Duration(s.total),
		time.Duration(s.watched), t.packets}
}
