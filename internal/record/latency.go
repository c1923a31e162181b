package record

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Latency is what the transfer made of others' round trips on the path: small packets on
// a connection of their own, before it and beside it. Times are medians but where said.
type Latency struct {
	Method         string   `json:"method"` // "echo" on the control connection, "ICMP", "ICMP (raw)", "TCP connect"
	IdleS          float64  `json:"idle_s"`
	IdleProbes     int      `json:"idle_probes"`
	LoadedS        *float64 `json:"loaded_s,omitempty"`
	LoadedP95S     *float64 `json:"loaded_p95_s,omitempty"`
	LoadedLargestS *float64 `json:"loaded_largest_s,omitempty"`
	LoadedProbes   int      `json:"loaded_probes"`
	Lost           int      `json:"lost_probes"`
	AddedS         *float64 `json:"added_s,omitempty"`
	// QueueBytes is what stands in the queue at the goodput: the added time's worth.
	QueueBytes *int64 `json:"queue_bytes,omitempty"`
	Bloat      Bloat  `json:"bufferbloat,omitempty"`
	// Starved says that a program that asks or answers waited for a core: the times say
	// nothing of queues then.
	Starved bool `json:"starved,omitempty"`
	// Separate says that the loaded connection waits in a queue that the small packets do
	// not: something keeps flows apart.
	Separate bool `json:"separate_queues,omitempty"`
}

// Bloat is how much a load adds to small packets' round trips, by the two thresholds of
// RFC 9097 section 8.1.
type Bloat string

// The closed list, with the added time's bounds.
const (
	NoBloat   Bloat = "none" // < 30 ms
	SomeBloat Bloat = "some" // up to 90 ms
	MuchBloat Bloat = "much"
)

const (
	bloatFrom = 30 * time.Millisecond
	bloatMuch = 90 * time.Millisecond
)

// NewLatency needs the direction's goodput and the connection's own round trips.
func NewLatency(l *transfer.Latency, d *Direction) *Latency {
	if l == nil || len(l.Idle) == 0 {
		return nil
	}
	idle := quantile(l.Idle, 0.5)
	out := &Latency{Method: l.Method, IdleS: idle.Seconds(), IdleProbes: len(l.Idle), LoadedProbes: len(l.Loaded),
		Lost: l.Lost}
	if len(l.Loaded) == 0 {
		return out
	}
	loaded := quantile(l.Loaded, 0.5)
	out.LoadedS, out.LoadedP95S, out.LoadedLargestS = seconds(loaded), seconds(quantile(l.Loaded, 0.95)),
		seconds(quantile(l.Loaded, 1))
	added := max(loaded-idle, 0)
	out.AddedS = seconds(added)
	if out.Starved = d.starved() && added >= bloatFrom; out.Starved {
		return out
	}
	switch {
	case added < bloatFrom:
		out.Bloat = NoBloat
	case added <= bloatMuch:
		out.Bloat = SomeBloat
	default:
		out.Bloat = MuchBloat
	}
	if d.GoodputBps != nil {
		bytes := int64(*d.GoodputBps / 8 * added.Seconds())
		out.QueueBytes = &bytes
	}
	if d.RTTLoadedS != nil && d.RTTMinS != nil {
		own := *d.RTTLoadedS - *d.RTTMinS
		out.Separate = own > bloatFrom.Seconds() && added.Seconds() < own/3
	}
	return out
}

// quantile is the value below which the share q of the times lie.
func quantile(times []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
