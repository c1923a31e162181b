package report

import (
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Latency needs the direction's goodput and the connection's own round trips.
func Latency(l *transfer.Latency, d *record.Direction) *record.Latency {
	if l == nil || len(l.Idle) == 0 {
		return nil
	}
	idle := quantile(l.Idle, 0.5)
	out := &record.Latency{Method: l.Method, IdleS: idle.Seconds(), IdleProbes: len(l.Idle),
		LoadedProbes: len(l.Loaded),
		Lost:         l.Lost}
	if len(l.Loaded) == 0 {
		return out
	}
	loaded := quantile(l.Loaded, 0.5)
	out.LoadedS = seconds(loaded)
	out.LoadedP95S = seconds(quantile(l.Loaded, 0.95))
	out.LoadedLargestS = seconds(quantile(l.Loaded, 1))
	out.LoadedTrimmedMeanS = seconds(trimmedMean(l.Loaded))
	added := max(loaded-idle, 0)
	out.AddedS = seconds(added)
	out.NoCore = starved(d) && added >= record.SomeBloatFrom
	if out.NoCore {
		return out
	}
	switch {
	case added < record.SomeBloatFrom:
		out.Bloat = record.NoBloat
	case added <= record.MuchBloatAbove:
		out.Bloat = record.SomeBloat
	default:
		out.Bloat = record.MuchBloat
	}
	if d.GoodputBps != nil {
		bytes := int64(*d.GoodputBps / 8 * added.Seconds())
		out.QueueBytes = &bytes
	}
	if d.RTTLoaded > 0 && d.RTTMin > 0 {
		own := (d.RTTLoaded - d.RTTMin).Seconds()
		// In a queue that all share, one packet in twenty meets it at the least.
		out.Separate = own > record.SomeBloatFrom.Seconds() && *out.LoadedP95S-out.IdleS < own/3
	}
	return out
}

// trimmed is the share of the slowest RTTs that trimmedMean leaves out | draft-ietf-ippm-responsiveness-09, TMP
const trimmed = 0.05

// trimmedMean returns the mean without the largest values. There is at least one value.
func trimmedMean(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	sorted = sorted[:max(int(math.Ceil((1-trimmed)*float64(len(sorted)))), 1)]
	sum := 0.0
	for _, one := range sorted {
		sum += float64(one)
	}
	return time.Duration(sum / float64(len(sorted)))
}

// quantile is the value below which the share q of the times lie.
func quantile(times []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
