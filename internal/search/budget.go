package search

import (
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
)

// Budget is what a search may spend.
type Budget struct {
	Time  time.Duration
	Bytes int64
}

// Step is the ratio between neighbouring windows of an exhaustive sweep.
const Step = 1.1

// Repeats is how often an exhaustive sweep has to measure each window: the fewest
// values whose largest bounds their median at 95 % (1 − 2⁻⁵).
const Repeats = 5

// Share is the part of a budget that the search may spend; the rest proves the gain.
const Share = 0.65

// A transfer lasts for mostSegments at least, by which a rate is known to 2 %. On a modem that
// is a minute: from patience on fewestSegments have to do.
const (
	mostSegments   = 60
	fewestSegments = 25
	patience       = 10.0 // s
)

// segments returns how long a transfer has to last for enough segments, where each takes a time in seconds.
func segments(each float64) float64 {
	return math.Min(mostSegments*each, math.Max(fewestSegments*each, patience))
}

// transfers is the number of transfers of such a length in a budget.
const transfers = 15

// FewRounds and LossyRounds are the round trips that a transfer lasts for at least after slow
// start. Where transfers lose segments the few are too few: CUBIC comes down from where slow start
// ended within a dozen, and the cost of single losses evens out over more (RFC 9438 sections 4.6
// and 5.1).
const (
	FewRounds   = 6
	LossyRounds = 20
)

// steadyRounds is how many round trips a transfer lasts after slow start.
func (c Config) steadyRounds() float64 { return float64(max(c.Rounds, FewRounds)) }

// LossyTransfers is the number of transfers of a comparison of three candidates and a verification: a budget has room
// for them where each of them is long because the path loses.
const LossyTransfers = 20

// Budget is the most that a direction may cost: the larger of 30 s, the time of 900 segments
// (375 on lines that take 10 s for 25), 150 round trips and, where the path loses, LossyTransfers;
// no more than a tenth of the exhaustive sweep.
func (c Config) Budget() Budget {
	segments := transfers * segments(float64(c.MSS)*8/c.CapacityBps)
	seconds := math.Max(30, math.Max(segments, 150*c.RTT.Seconds()))
	if c.Rounds >= LossyRounds {
		seconds = math.Max(seconds, LossyTransfers*c.Length(0).Seconds())
	}
	sweep := c.Sweep()
	return Budget{
		Time:  time.Duration(math.Min(seconds, sweep.Time.Seconds()/10) * float64(time.Second)),
		Bytes: sweep.Bytes / 10,
	}
}

// Sweep is what an exhaustive sweep costs: windows in steps of 10 % from two segments
// to 8 × Knee, and automatic sizing, each measured Repeats times for as long as the
// search measures it.
func (c Config) Sweep() Budget {
	var seconds, bytes float64
	add := func(window float64) {
		t := c.Length(int(window)).Seconds()
		seconds += t * Repeats
		bytes += t * Repeats / 8 * math.Min(c.CapacityBps, window*8/c.RTT.Seconds())
	}
	for w := 2 * float64(c.MSS); w <= math.Min(8*c.Knee, model.MaxWindow)*1.0001; w *= Step {
		add(w)
	}
	add(8 * c.Knee)
	return Budget{time.Duration(seconds * float64(time.Second)), int64(math.Min(bytes, math.MaxInt64/2))}
}

// Length is how long one transfer has to last: slow start until the window or the path
// is full, the Burst, and then at least its Rounds, 60 segments (25 where they take 10 s) and
// 1.2 s. Window 0 is automatic sizing.
func (c Config) Length(window int) time.Duration {
	full := 1.25 * c.Knee
	if window > 0 {
		full = math.Min(full, float64(window))
	}
	rounds := 2 + math.Max(0, math.Log2(full/float64(model.InitialWindow*c.MSS)))
	segment := float64(c.MSS) * 8 / c.CapacityBps
	if window > 0 { // a small window carries fewer segments in the same time
		segment = math.Max(segment, c.RTT.Seconds()*float64(c.MSS)/float64(window))
	}
	steady := c.Burst.Seconds() + math.Max(1.2, math.Max(c.steadyRounds()*c.RTT.Seconds(), segments(segment)))
	return time.Duration((rounds*c.RTT.Seconds() + steady) * float64(time.Second))
}
