package turns

import (
	"cmp"
	"math"
	"slices"
)

// Counts are exact, however many turns there are.
type Counts struct {
	Count       int64 // complete turns
	Bulky       int64 // of them those with a bulk transfer
	Pushes      int64 // segments of the server before the client's first data
	Unanswered  int64 // requests without a response
	Overlapping int64 // turns whose request did not wait for the end of the response before
	Needless    int64 // retransmissions that were not needed

	Stalled [Causes][2]Total // by cause; [1] those that the client owed
}

// Total counts stalls and adds up their time.
type Total struct{ Count, Time int64 }

func (c *Counts) add(o *Counts) {
	c.Count += o.Count
	c.Bulky += o.Bulky
	c.Pushes += o.Pushes
	c.Unanswered += o.Unanswered
	c.Overlapping += o.Overlapping
	c.Needless += o.Needless
	for cause := range o.Stalled {
		for side, sum := range o.Stalled[cause] {
			c.Stalled[cause][side].Count += sum.Count
			c.Stalled[cause][side].Time += sum.Time
		}
	}
}

// note counts a stall, or takes it back where count is -1.
func (c *Counts) note(cause Cause, fromClient bool, waited, count int64) {
	sum := &c.Stalled[cause][sideIndex(fromClient)]
	sum.Count += count
	sum.Time += count * waited
}

// sideIndex is 1 for the client.
func sideIndex(client bool) int {
	if client {
		return 1
	}
	return 0
}

// Interleaved reports whether requests and responses go both ways at once, so that turns cannot be
// separated.
func (c *Counts) Interleaved() bool {
	const few = 3
	return c.Overlapping >= few && c.Overlapping*10 >= c.Count
}

// Summary keeps a connection's turns. Its memory is bounded; the counts and the slowest turns are
// exact.
type Summary struct {
	Counts

	// MaxKept bounds the turns that are kept; 0 is 2,000. Of more, every second one is dropped.
	MaxKept int
	kept    []kept
	every   int64  // one of this number of turns is kept
	slowest []kept // of all turns, once some have been dropped; the slowest first
}

// kept is the compact form of a turn.
type kept struct {
	start, first, last, duration int64
	time                         [Stages][Causes]float32 // nanoseconds
	lostBeforeTheTap             bool
}

func keep(t *Turn) (k kept) {
	k = kept{start: t.Start, first: t.First, last: t.Last, duration: t.Duration,
		lostBeforeTheTap: t.LostBeforeTheTap}
	for s := range t.Time {
		for c, d := range t.Time[s] {
			k.time[s][c] = float32(d)
		}
	}
	return k
}

func (k *kept) turn() Turn {
	t := Turn{Start: k.start, First: k.first, Last: k.last, Duration: k.duration,
		LostBeforeTheTap: k.lostBeforeTheTap}
	for s := range k.time {
		for c, d := range k.time[s] {
			t.Time[s][c] = int64(d)
		}
	}
	return t
}

const (
	maxKept    = 2_000
	maxSlowest = 5
)

// take adds a complete turn.
func (s *Summary) take(t *Turn, bulk bool) {
	s.Count++
	if bulk { // most of its segments were not followed
		s.Bulky++
		return
	}
	one := keep(t)
	s.every = max(s.every, 1)
	if s.every > 1 {
		s.offer(&one)
	}
	if (s.Count-s.Bulky)%s.every == 0 {
		s.kept = append(s.kept, one)
	}
	if len(s.kept) > cmp.Or(s.MaxKept, maxKept) {
		s.thin()
	}
}

// Each calls each with the durations of the turns and how many turns each of them represents.
func (s *Summary) Each(each func(duration, count int64)) {
	for i := range s.kept {
		each(s.kept[i].duration, s.every)
	}
}

// thin drops every second turn.
func (s *Summary) thin() {
	if s.every == 1 {
		for i := range s.kept {
			s.offer(&s.kept[i])
		}
	}
	for i := range len(s.kept) / 2 {
		s.kept[i] = s.kept[2*i+1]
	}
	s.kept = s.kept[:len(s.kept)/2]
	s.every *= 2
}

// offer adds a turn to the slowest.
func (s *Summary) offer(one *kept) {
	n := len(s.slowest)
	if n == maxSlowest && s.slowest[n-1].duration >= one.duration {
		return
	}
	i := n
	for i > 0 && s.slowest[i-1].duration < one.duration {
		i--
	}
	s.slowest = slices.Insert(s.slowest, i, *one)
	s.slowest = s.slowest[:min(n+1, maxSlowest)]
}

// Profile describes the turns of one or several connections, in nanoseconds.
type Profile struct {
	Counts
	P50, P90, P99, Max int64 // P90 is 0 below minForP90 turns, P99 below minForP99
	// Median and Slowest are the means of the tenth of the turns around the median and of the slowest hundredth.
	Median, Slowest Times
	Longest         []Slow // at most five, the slowest first
	Distribution    []Bin  // from the fastest to the slowest; empty ones are left out
	// Unclassified counts the Exchanges with a retransmission and a stall whose kind is not known.
	Unclassified int64
}

// Bin counts the turns that took less than Below, and not less than the next lower bound.
type Bin struct{ Below, Count int64 }

// binsPerDecade is the resolution of a Distribution: each Below is 1.26 times the one before.
const binsPerDecade = 10

// Slow is one of the slowest turns, and the index of its connection.
type Slow struct {
	Turn
	Connection int
}

const (
	minForP90 = 20
	minForP99 = 100
)

// pooled is a kept turn, and the number of turns of its connection that it represents.
type pooled struct {
	*kept
	weight     int64
	connection int
}

// ProfileOf returns the profile of the turns of all connections together.
func ProfileOf(all ...*Summary) (p Profile) {
	var turns, slowest []pooled
	var total int64
	for i, s := range all {
		p.Counts.add(&s.Counts)
		for j := range s.kept {
			turns = append(turns, pooled{&s.kept[j], s.every, i})
			total += s.every
		}
		for j := range s.slowest {
			slowest = append(slowest, pooled{&s.slowest[j], 1, i})
		}
		if s.every == 1 {
			slowest = append(slowest, turns[len(turns)-len(s.kept):]...)
		}
	}
	if total == 0 {
		return p
	}
	byDuration := func(a, b pooled) int { return cmp.Compare(a.duration, b.duration) }
	slices.SortStableFunc(turns, byDuration)
	// place is the index of the first turn above a share of all.
	place := func(share float64) int {
		var sum int64
		for i, one := range turns {
			sum += one.weight
			if sum > int64(share*float64(total)) {
				return i
			}
		}
		return len(turns) - 1
	}
	at := func(share float64) int64 { return turns[place(share)].duration }
	p.P50 = at(0.5)
	if p.Count-p.Bulky >= minForP90 {
		p.P90 = at(0.9)
	}
	if p.Count-p.Bulky >= minForP99 {
		p.P99 = at(0.99)
	}
	p.Median = mean(turns[place(0.45):max(place(0.55), place(0.45)+1)])
	p.Slowest = mean(turns[min(place(0.99), len(turns)-1):])
	slices.SortStableFunc(slowest, func(a, b pooled) int { return byDuration(b, a) })
	for _, one := range slowest[:min(len(slowest), maxSlowest)] {
		p.Longest = append(p.Longest, Slow{one.turn(), one.connection})
	}
	p.Max = p.Longest[0].Duration
	p.Distribution = distribution(turns)
	return p
}

// distribution counts turns, which are sorted.
func distribution(turns []pooled) (bins []Bin) {
	for _, one := range turns {
		bins = AddToBins(bins, one.duration, one.weight)
	}
	return bins
}

// AddToBins counts turns in a Distribution. No turn before took longer.
func AddToBins(bins []Bin, duration, count int64) []Bin {
	if n := len(bins); n == 0 || duration >= bins[n-1].Below {
		decades := math.Floor(math.Log10(float64(max(duration, 1)))*binsPerDecade+1e-9) + 1
		bins = append(bins, Bin{Below: int64(math.Ceil(math.Pow(10, decades/binsPerDecade)))})
	}
	bins[len(bins)-1].Count += count
	return bins
}

func mean(some []pooled) (m Times) {
	var total int64
	for _, one := range some {
		total += one.weight
		for s := range one.time {
			for c, d := range one.time[s] {
				m[s][c] += int64(d) * one.weight
			}
		}
	}
	for s := range m {
		for c := range m[s] {
			m[s][c] /= total
		}
	}
	return m
}
