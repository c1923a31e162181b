package web

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// The distance of the points of a speed test's curves. The server samples every 40 ms.
const (
	maxCurveStep = 200 * time.Millisecond
	minCurveStep = 50 * time.Millisecond
)

// intervalsOf sums the bytes of a phase's connections over time: acknowledged ones of a download, received ones of an
// upload.
func intervalsOf(streams []transfer.Stream, download bool) (all []transfer.Interval) {
	var end time.Duration
	for _, s := range streams {
		if n := len(s.Samples); n > 0 {
			end = max(end, s.Samples[n-1].At)
		}
	}
	sum := func(at time.Duration) (bytes int64) {
		for _, s := range streams {
			bytes += bytesAt(s.Samples, at, download)
		}
		return bytes
	}
	before := sum(0)
	step := min(max(end/25, minCurveStep), maxCurveStep)
	for from := time.Duration(0); from+step <= end && len(all) < maxCurve; from += step {
		now := sum(from + step)
		all = append(all, transfer.Interval{Start: from, End: from + step, Bytes: max(now-before, 0)})
		before = now
	}
	return all
}

// maxCurve is the maximum number of points of one curve.
const maxCurve = 100

// bytesAt returns a connection's bytes at a time, interpolated between its samples.
func bytesAt(samples []transfer.Sample, at time.Duration, download bool) int64 {
	count := func(s *transfer.Sample) int64 {
		if download {
			return s.Acked
		}
		return s.Received
	}
	i, exact := slices.BinarySearchFunc(samples, at, func(s transfer.Sample, at time.Duration) int {
		return int(s.At - at)
	})
	switch {
	case len(samples) == 0 || i == 0 && !exact:
		return 0
	case exact:
		return count(&samples[i])
	case i == len(samples):
		return count(&samples[i-1])
	}
	a := &samples[i-1]
	b := &samples[i]
	share := float64(at-a.At) / float64(b.At-a.At)
	return count(a) + int64(share*float64(count(b)-count(a)))
}

// probesOf returns a phase's RTTs over time, thinned to maxCurve points; none if the times do not fit.
func probesOf(p *browserPhase) (points []flow.Point) {
	if len(p.RTTAtMs) != len(p.RTTMs) || !slices.IsSorted(p.RTTAtMs) {
		return nil
	}
	step := (len(p.RTTMs) + maxCurve - 1) / maxCurve
	for i := 0; i < len(p.RTTMs); i += max(step, 1) {
		largest := slices.Max(p.RTTMs[i:min(i+step, len(p.RTTMs))]) // a peak must not vanish
		points = append(points, flow.Point{At: int64(p.RTTAtMs[i] * 1e6), Value: int64(largest * 1e6)})
	}
	return points
}
