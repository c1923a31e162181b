package flow

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Starts are the moments at which a sender went on after it had sent nothing for an eighth of a round trip and more.
// They show whether the other end's messages or a clock of its own let it go on.
type Starts struct {
	Count    int64
	Prompted int64 // soon after a message of the other end
	Own      int64 // time with nothing in flight before all starts, nanoseconds

	at         int64   // of the last start
	mean, dev2 float64 // of the intervals between starts (Welford)
}

// started notes new data after a silence.
func (d *Direction) started(at, silence int64) {
	if silence < int64(threshold.HostReacts.Value) {
		return
	}
	if d.Starts == nil {
		d.Starts = &Starts{}
	}
	s := d.Starts
	s.Count++
	if s.Count > 1 {
		delta := float64(at-s.at) - s.mean
		s.mean += delta / float64(s.Count-1)
		s.dev2 += delta * (float64(at-s.at) - s.mean)
	}
	s.at = at
	spoke := d.conn.sides[1-d.me].spoke
	since := at - spoke - d.rtt.delay() // less than 0 where the loop through the sender is estimated too long
	if spoke > 0 && abs(since) <= max(d.RTTMin/int64(threshold.PromptPart.Value), int64(threshold.HostReacts.Value)) {
		s.Prompted++
	}
}

// Variation returns the standard deviation of the intervals between starts as a share of their mean; 1 where there are
// too few of them.
func (s *Starts) Variation() float64 {
	const few = 5
	if s == nil || s.Count < few || s.mean <= 0 {
		return 1
	}
	return math.Sqrt(s.dev2/float64(s.Count-2)) / s.mean
}
