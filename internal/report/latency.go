package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
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

// newLatency needs the direction's goodput and the connection's own round trips.
func newLatency(l *transfer.Latency, d *Direction) *Latency {
	if l == nil || len(l.Idle) == 0 {
		return nil
	}
	idle := quantile(l.Idle, 0.5)
	out := &Latency{Method: l.Method, IdleS: idle.Seconds(), IdleProbes: len(l.Idle), LoadedProbes: len(l.Loaded), Lost: l.Lost}
	if len(l.Loaded) == 0 {
		return out
	}
	loaded := quantile(l.Loaded, 0.5)
	out.LoadedS, out.LoadedP95S, out.LoadedLargestS = seconds(loaded), seconds(quantile(l.Loaded, 0.95)), seconds(quantile(l.Loaded, 1))
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

// rows adds what a person reads.
func (l *Latency) rows(t *table) {
	if l == nil {
		return
	}
	text := secondsText(l.IdleS) + " idle"
	if l.LoadedS == nil {
		t.row("small packets", fmt.Sprintf("%s; too few under load to say more (%s)", text, l.Method))
		return
	}
	text += fmt.Sprintf(", %s under load, %s at 95 %% (%d by %s", secondsText(*l.LoadedS), secondsText(*l.LoadedP95S), l.LoadedProbes, l.Method)
	if l.Lost > 0 {
		text += fmt.Sprintf(", %d unanswered", l.Lost)
	}
	t.row("small packets", text+")")
	t.row("", l.words())
}

// words say what the added time means.
func (l *Latency) words() string {
	added := secondsText(*l.AddedS)
	if *l.AddedS < 1e-3 {
		added = "less than 1 ms"
	}
	queue := ""
	if l.QueueBytes != nil {
		queue = fmt.Sprintf(": a queue of %s stands on the way", units.Size(*l.QueueBytes))
	}
	switch {
	case l.Starved:
		return "the load adds " + added + ", but the programs waited for a core: this says nothing of queues"
	case l.Separate:
		return "the transfer waits in a queue that other packets do not share: flows are kept apart on the way (fair queueing)"
	case l.Bloat == NoBloat:
		return "the load adds " + added + ": others hardly notice"
	case l.Bloat == SomeBloat:
		return "some bufferbloat: the load adds " + added + " to everybody's round trips" + queue + "; calls and games notice"
	}
	return "bufferbloat: the load adds " + added + " to everybody's round trips" + queue + "; a smart queue (fq_codel, cake) at the bottleneck or a lower rate helps"
}
