package transfer

import (
	"sort"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Startup is the start of a transfer, before its rate settled.
type Startup struct {
	End       time.Duration // since the first byte
	Bytes     int64         // delivered until then
	SteadyBps float64       // goodput after it
}

// Startup finds the end of slow start: the earliest moment from which a span is as fast as everything after it, within
// one MSS. A moment with out-of-order segments is used only if there is no other: the data behind a hole, up to a BDP
// at the end of slow start, would count as if it arrived later. It returns false if the rate never settled or too
// little was sampled.
func (r *Result) Startup() (s Startup, ok bool) {
	end := r.CountingEnd()
	total, known := r.Received()
	if end == nil || !known || total.Duration() <= 0 {
		return Startup{}, false
	}
	curves := newCurves(end)
	if len(curves) == 0 {
		return Startup{}, false
	}
	span := startupSpan(r, total)
	segment := float64(end.Streams[0].Handshake.SegmentSize())
	last := curves.at(total.Last)
	latest := total.First + time.Duration(threshold.LatestStartup*float64(total.Duration()))
	for _, m := range curves.arrivals(total.First, latest) {
		t := m.seen
		if t+span >= total.Last {
			break
		}
		here := curves.at(t)
		rest := (last - here) / (total.Last - t).Seconds()
		if curves.holeFilledAfter(t, rest) {
			continue
		}
		if curves.at(t+span)-here+segment >= threshold.StartupSettled*rest*span.Seconds() {
			since := total.Last - m.estimatedAt(segment/rest)
			found := Startup{End: t - total.First, Bytes: int64(here), SteadyBps: (last - here) * 8 / since.Seconds()}
			if !curves.nearReordering(t) {
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

// startupSpan returns the length of the spans that are compared.
func startupSpan(r *Result, total Span) time.Duration {
	return max(threshold.StartupRounds*r.MinRTT(), total.Duration()/threshold.MaxStartupSpans)
}

// arrival is the time of a sample with new bytes, and that of the sample before.
type arrival struct{ before, seen time.Duration }

// estimatedAt returns the mean time at which the last of the bytes arrived, where segments arrive gap seconds apart:
// half-way between the two samples, or half a gap before the second.
func (a arrival) estimatedAt(gap float64) time.Duration {
	return a.seen - min(a.seen-a.before, time.Duration(gap*float64(time.Second)))/2
}

// curve is one stream's delivered bytes over time.
type curve []point

type point struct {
	at         time.Duration
	bytes      float64
	outOfOrder bool // segments arrived out of order since the point before
}

type curves []curve

func newCurves(end *End) (all curves) {
	for _, stream := range end.Streams {
		c := curve{{at: stream.First, bytes: float64(stream.FirstReadBytes)}}
		early := int64(0)
		for _, s := range stream.Samples {
			delivered, ok := s.delivered()
			if ok && s.At > c[len(c)-1].at && s.At < stream.Last {
				c = append(c, point{s.At, float64(delivered), s.Have&HaveRcvOOOPack != 0 && s.RcvOOOPack > early})
				early = s.RcvOOOPack
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

// at returns the bytes that all streams had delivered by t, linear between samples.
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

// holeFilledAfter reports whether a hole was repaired between t and the next sample: more was delivered than HoleRate
// times rate (bytes a second) and HoleSegments explain. Those bytes had arrived before t.
func (all curves) holeFilledAfter(t time.Duration, rate float64) bool {
	const hole = threshold.HoleSegments * DefaultMSS
	for _, c := range all {
		i := sort.Search(len(c), func(i int) bool { return c[i].at > t })
		if i == 0 || i == len(c) {
			continue
		}
		a := c[i-1]
		b := c[i]
		if b.bytes-a.bytes > threshold.HoleRate*rate*(b.at-a.at).Seconds()+hole {
			return true
		}
	}
	return false
}

// nearReordering reports whether segments arrived out of order just before or after t.
func (all curves) nearReordering(t time.Duration) bool {
	for _, c := range all {
		i := sort.Search(len(c), func(i int) bool { return c[i].at > t })
		if i > 0 && c[i-1].outOfOrder || i < len(c) && c[i].outOfOrder {
			return true
		}
	}
	return false
}

// arrivals returns the samples in [from, to] that have new bytes, in order. Between them a rate is not known where
// segments are few. A stream's first bytes are timed exactly.
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
