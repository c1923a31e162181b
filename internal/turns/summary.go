package turns

import (
	"cmp"
	"slices"
)

// Summary sums up a connection's turns. Its memory is bounded; the counts and the slowest turns are exact.
type Summary struct {
	Count       int64 // complete turns
	Bulky       int64 // of them those with a bulk transfer
	Pushes      int64 // segments of the server before the client's first data
	Unanswered  int64 // requests without a response
	Overlapping int64 // turns whose request did not wait for the end of the response before
	Needless    int64 // retransmissions that were not needed
	Ended       bool

	Stalled [Causes][2]Total // by cause; [1] those that the client owed
	Slowest []Turn           // the slowest first
	Stalls  []Stall          // the longest first

	// MaxKept bounds the turns that Quantiles and Mean look at; 0 is 2,000. Of more, every second one is dropped.
	MaxKept int
	kept    []kept
	every   int64
}

// kept is the compact form of a turn: microseconds.
type kept struct {
	duration uint32
	time     [Stages][Causes]uint32
}

func keep(t *Turn) (k kept) {
	micro := func(d int64) uint32 { return uint32(min(max(d, 0)/1000, 1<<32-1)) }
	k.duration = micro(t.Duration)
	for s := range t.Time {
		for c, d := range t.Time[s] {
			k.time[s][c] = micro(d)
		}
	}
	return k
}

// Total counts stalls.
type Total struct{ Count, Time int64 }

const (
	maxKept    = 2_000
	maxSlowest = 5
	maxStalls  = 20
)

func (s *Summary) take(t *Turn, bulk bool) {
	s.Count++
	if bulk { // most of its segments were not followed
		s.Bulky++
		return
	}
	if s.every == 0 {
		s.every = 1
	}
	if s.Count%s.every == 0 {
		s.kept = append(s.kept, keep(t))
	}
	if most := cmp.Or(s.MaxKept, maxKept); len(s.kept) > most {
		for i := range len(s.kept) / 2 {
			s.kept[i] = s.kept[2*i+1]
		}
		s.kept = s.kept[:len(s.kept)/2]
		s.every *= 2
	}
	s.Slowest = keepLargest(s.Slowest, *t, maxSlowest, func(t *Turn) int64 { return t.Duration })
}

func (s *Summary) note(one Stall) {
	total := &s.Stalled[one.Cause][sideIndex(one.FromClient)]
	total.Count++
	total.Time += one.Duration
	s.Stalls = keepLargest(s.Stalls, one, maxStalls, func(s *Stall) int64 { return s.Duration })
}

// sideIndex is 1 for the client.
func sideIndex(client bool) int {
	if client {
		return 1
	}
	return 0
}

// forget takes back the stall that was noted last for a cause; toClient: the client's acknowledgement says so.
func (s *Summary) forget(c Cause, toClient bool, waited int64) {
	total := &s.Stalled[c][sideIndex(!toClient)]
	total.Count--
	total.Time -= waited
	s.Stalls = slices.DeleteFunc(s.Stalls, func(one Stall) bool { return one.Cause == c && one.Duration == waited })
}

func keepLargest[T any](all []T, one T, n int, by func(*T) int64) []T {
	if len(all) == n && by(&all[n-1]) >= by(&one) {
		return all
	}
	i, _ := slices.BinarySearchFunc(all, one, func(a, b T) int { return cmp.Compare(by(&b), by(&a)) })
	all = slices.Insert(all, i, one)
	return all[:min(len(all), n)]
}

// Profile has the durations of turns and their causes, nanoseconds.
type Profile struct {
	P50, P90, P99, Max int64 // P90 is 0 below minForP90 turns, P99 below minForP99
	// Median and Slowest are the means of the tenth of the turns around the median and of the slowest hundredth.
	Median, Slowest Times
}

const (
	minForP90 = 20
	minForP99 = 100
)

// Profile returns the quantiles of the turns and the causes of the waits.
func (s *Summary) Profile() (p Profile) {
	n := len(s.kept)
	if n == 0 {
		return p
	}
	sorted := slices.Clone(s.kept)
	slices.SortStableFunc(sorted, func(a, b kept) int { return cmp.Compare(a.duration, b.duration) })
	at := func(q float64) int64 { return int64(sorted[min(int(q*float64(n)), n-1)].duration) * 1000 }
	p.P50 = at(0.5)
	if s.Count >= minForP90 {
		p.P90 = at(0.9)
	}
	if s.Count >= minForP99 {
		p.P99 = at(0.99)
	}
	p.Max = s.Slowest[0].Duration
	p.Median = mean(sorted[n*45/100 : max(n*55/100, n*45/100+1)])
	p.Slowest = mean(sorted[n-max(n/100, 1):])
	return p
}

func mean(some []kept) (m Times) {
	for i := range some {
		for s := range some[i].time {
			for c, d := range some[i].time[s] {
				m[s][c] += int64(d) * 1000
			}
		}
	}
	for s := range m {
		for c := range m[s] {
			m[s][c] /= int64(len(some))
		}
	}
	return m
}

// Interleaved reports whether requests and responses go both ways at once, so that turns cannot be separated.
func (s *Summary) Interleaved() bool {
	const few = 3
	return s.Overlapping >= few && s.Overlapping*10 >= s.Count
}
