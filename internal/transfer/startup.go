package transfer

import (
	"sort"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Startup is the beginning of a transfer, before its rate settled.
type Startup struct {
	End       time.Duration // since the first byte
	Bytes     int64         // delivered until then
	SteadyBps float64       // goodput after it
}

// Startup finds where slow start ended: the earliest moment from which a span of two
// round trips (at least a fortieth of the transfer) is as fast as all that follows, but for
// one segment, since no more than whole ones arrive. A moment at which segments come out of
// order is not taken if there is another: what a hole holds back then would count as if it came
// later, which on the way out of slow start is as much as the path holds. ok is false where the
// rate never settled or too little was sampled.
func (r *Result) Startup() (s Startup, ok bool) {
	end := r.Counting()
	total, known := r.Received()
	if end == nil || !known || total.Duration() <= 0 {
		return Startup{}, false
	}
	curves := newCurves(end)
	if len(curves) == 0 {
		return Startup{}, false
	}
	span := max(threshold.StartupRounds*r.LeastRTT(), total.Duration()/40)
	segment := end.segment()
	last := curves.at(total.Last)
	latest := total.First + time.Duration(threshold.LatestStartup*float64(total.Duration()))
	for _, m := range curves.arrivals(total.First, latest) {
		t := m.seen
		if t+span >= total.Last {
			break
		}
		here := curves.at(t)
		rest := (last - here) / (total.Last - t).Seconds()
		if curves.jumps(t, rest) {
			continue
		}
		if curves.at(t+span)-here+segment >= threshold.StartupSettled*rest*span.Seconds() {
			since := total.Last - m.at(segment/rest)
			found := Startup{End: t - total.First, Bytes: int64(here), SteadyBps: (last - here) * 8 / since.Seconds()}
			if !curves.behindHole(t) {
				return found, true
			}
			if !ok {
				s = found
				ok = true
			}
		}
	}
	return s, ok
}

// segment is the size in bytes of what arrives at once.
func (e *End) segment() float64 {
	if h := e.Streams[0].Handshake; h != nil && h.MSS > 0 {
		return float64(h.MSS)
	}
	return 1460
}

// arrival is when new bytes were seen, and the sample before, which did not have them.
type arrival struct{ before, seen time.Duration }

// at is when the last of them came, in the mean, where segments follow each other in so many
// seconds: half way between the two samples, or half a gap ago.
func (a arrival) at(gap float64) time.Duration {
	return a.seen - min(a.seen-a.before, time.Duration(gap*float64(time.Second)))/2
}

// curve is one stream's delivered bytes over time.
type curve []point

type point struct {
	at         time.Duration
	bytes      float64
	outOfOrder bool // segments came out of order since the point before
}

type curves []curve

func newCurves(end *End) (all curves) {
	for _, stream := range end.Streams {
		c := curve{{at: stream.First, bytes: float64(stream.Opening)}} // what had arrived by First took no time
		early := int64(0)
		for _, s := range stream.Samples {
			delivered, ok := s.delivered()
			if ok && s.At > c[len(c)-1].at && s.At < stream.Last {
				c = append(c, point{s.At, float64(delivered), s.Have&HaveOutOfOrder != 0 && s.OutOfOrder > early})
				early = s.OutOfOrder
			}
		}
		if len(c) > 1 && stream.Last > c[len(c)-1].at {
			all = append(all, append(c, point{at: stream.Last, bytes: float64(stream.Bytes)}))
		}
	}
	return all
}

func (s *Sample) delivered() (int64, bool) {
	switch {
	case s.Have&HaveReceived != 0 && s.Received > 0:
		return s.Received, true
	case s.Have&HaveAcked != 0:
		return s.Acked, true
	case s.Have&HaveProgram != 0:
		return s.Program, true
	}
	return 0, false
}

// at is what all streams together had delivered by then, linear between samples.
func (all curves) at(t time.Duration) (sum float64) {
	for _, c := range all {
		i := sort.Search(len(c), func(i int) bool { return c[i].at > t })
		switch {
		case i == 0:
		case i == len(c):
			sum += c[i-1].bytes
		default:
			a := c[i-1]
			b := c[i]
			sum += a.bytes + (b.bytes-a.bytes)*float64(t-a.at)/float64(b.at-a.at)
		}
	}
	return sum
}

// jumps says that right after t, until the next sample, more was delivered than three times
// the rate (bytes a second) explains, and than four segments: a hole was repaired there, and
// what it held back had arrived before t.
func (all curves) jumps(t time.Duration, rate float64) bool {
	const fewSegments = 4 * 1460
	for _, c := range all {
		i := sort.Search(len(c), func(i int) bool { return c[i].at > t })
		if i == 0 || i == len(c) {
			continue
		}
		a := c[i-1]
		b := c[i]
		if b.bytes-a.bytes > 3*rate*(b.at-a.at).Seconds()+fewSegments {
			return true
		}
	}
	return false
}

// behindHole says that segments come out of order around t, before the sample there or after it.
func (all curves) behindHole(t time.Duration) bool {
	for _, c := range all {
		i := sort.Search(len(c), func(i int) bool { return c[i].at > t })
		if i > 0 && c[i-1].outOfOrder || i < len(c) && c[i].outOfOrder {
			return true
		}
	}
	return false
}

// arrivals are the moments in [from, to] at which new bytes were seen, in order. Other moments
// tell no rate where segments are few: the one before came some time ago. A stream's first
// bytes are timed exactly.
func (all curves) arrivals(from, to time.Duration) (arrivals []arrival) {
	for _, c := range all {
		for i, p := range c {
			before := c[max(i-1, 0)]
			if (i == 0 || p.bytes > before.bytes) && p.at >= from && p.at <= to {
				arrivals = append(arrivals, arrival{before.at, p.at})
			}
		}
	}
	sort.Slice(arrivals, func(i, j int) bool { return arrivals[i].seen < arrivals[j].seen })
	return arrivals
}
