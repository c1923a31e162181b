package watch

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/fullpipe-net/fullpipe/internal/lost"
	"github.com/fullpipe-net/fullpipe/internal/openmetrics"
	"github.com/fullpipe-net/fullpipe/internal/segments"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/turns"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/waits"
)

// maxGroupsReported bounds the label values that a host's connections can make. Later groups are counted as "other".
const maxGroupsReported = 200

// Metrics sums the views of a watch into counters that never fall, by labels. It is pure and not safe for concurrent
// use.
type Metrics struct {
	groups map[labels]*group
	folded int64 // connections' periods that went to otherGroup
	last   View
	shifts map[string]int64 // of paths, by what shifted
}

// labels are the label values of a group of connections; "" is not known, or no unit.
type labels struct{ program, unit, network, port string }

// otherGroup sums the groups above maxGroupsReported.
var otherGroup = labels{"other", "other", "other", "other"}

// labelsOf returns the labels of a connection.
func labelsOf(c *Connection) labels {
	g := groupOf(c)
	l := labels{program: c.Owner.Program, unit: c.Owner.Unit, network: g.Network.String()}
	if g.Port > 0 {
		l.port = strconv.Itoa(int(g.Port))
	}
	return l
}

// list returns names and values, followed by more of them.
func (l labels) list(more ...string) []string {
	return append([]string{"program", l.program, "unit", l.unit, "network", l.network, "port", l.port}, more...)
}

// compare orders by program, unit, network and port.
func (l labels) compare(other labels) int {
	return slices.Compare([]string{l.program, l.unit, l.network, l.port},
		[]string{other.program, other.unit, other.network, other.port})
}

// group is what one group's connections did.
type group struct {
	sent, received, retransmitted int64
	limited                       map[limitedBy]float64      // seconds
	lost                          map[lostAt]int64           // bytes
	waited                        map[waits.Kind]float64     // seconds
	roundTrips                    [len(tripBounds) + 1]int64 // by bucket
	roundTripSum                  float64                    // seconds
	requests                      [len(tripBounds) + 1]int64 // by bucket
	requestSum                    float64                    // seconds
	stalled                       map[stalledBy]int64
}

// lostAt is a place of loss of one direction.
type lostAt struct {
	direction transfer.Direction
	place     string
}

// addLosses adds the retransmitted payload of a flow by the place of loss, on this host or elsewhere. Of a receiving
// flow it adds the payload that this host dropped.
func (g *group) addLosses(f *Flow) {
	l := f.Losses
	if l == nil {
		return
	}
	rest := l.Bytes
	for _, p := range l.Places {
		bytes := p.Bytes
		if f.Direction == transfer.Down {
			bytes = p.Dropped
		}
		rest -= p.Bytes
		if bytes > 0 {
			g.lost[lostAt{f.Direction, string(cmp.Or(lost.KindOf(p.Reason), lost.Other))}] += bytes
		}
	}
	if rest > 0 && f.Direction == transfer.Up && !l.Incomplete {
		g.lost[lostAt{f.Direction, "elsewhere"}] += rest
	}
}

// stalledBy is the cause of stalls and the end that owed the packet: here or peer.
type stalledBy struct{ cause, side string }

type limitedBy struct {
	direction transfer.Direction
	limiter   string
}

// tripBounds are the upper bounds of the buckets of round trips and requests, in seconds.
var tripBounds = [...]float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 0.5, 1,
	2.5, 10}

// NewMetrics returns empty Metrics.
func NewMetrics() *Metrics { return &Metrics{groups: map[labels]*group{}, shifts: map[string]int64{}} }

// Add adds a period's view. Views of a cumulative watch must not be added.
func (m *Metrics) Add(v *View) {
	counted := map[int]bool{} // programs, which may have several connections
	for i := range v.Connections {
		s := &v.Connections[i]
		g := m.group(s)
		g.addTurns(s.Turns)
		for j := range s.Flows {
			f := &s.Flows[j]
			if f.Direction == transfer.Up {
				g.sent += f.Bytes
				g.retransmitted += max(f.RetransmittedBytes, 0)
			} else {
				g.received += f.Bytes
			}
			g.addLosses(f)
			for name, share := range f.Verdict.Shares {
				g.limited[limitedBy{f.Direction, limiterLabel(f, name)}] += share * v.Span(s).Seconds()
			}
			if !counted[s.Owner.PID] {
				for _, w := range f.Waits {
					g.waited[w.Kind] += w.Time.Seconds()
					counted[s.Owner.PID] = true
				}
			}
			if f.RTT > 0 {
				trip := f.RTT.Seconds()
				at, _ := slices.BinarySearch(tripBounds[:], trip)
				g.roundTrips[at]++
				g.roundTripSum += trip
			}
		}
	}
	for i := range v.Shifts {
		for _, s := range v.Shifts[i].Shifts {
			m.shifts[string(s.Metric)]++
		}
	}
	m.last = *v
	m.last.Connections = nil
	m.last.Shifts = nil
}

// addTurns adds the turns of a connection.
func (g *group) addTurns(r *segments.Requests) {
	if r == nil {
		return
	}
	r.Each(func(duration, count int64) {
		seconds := float64(duration) / 1e9
		at, _ := slices.BinarySearch(tripBounds[:], seconds)
		g.requests[at] += count
		g.requestSum += seconds * float64(count)
	})
	for cause := range turns.Causes {
		for side, name := range []string{"peer", "here"} {
			if !r.Client {
				side = 1 - side
			}
			if sum := r.Stalled[cause][side]; sum.Count > 0 {
				g.stalled[stalledBy{cause.String(), name}] += sum.Count
			}
		}
	}
}

// limiterLabel is "network" where the kernel's clocks leave congestion, bottleneck, pacing
// and a local queue undivided.
func limiterLabel(f *Flow, name verdict.Name) string {
	byList := slices.ContainsFunc(f.Verdict.Evidence, func(e verdict.Evidence) bool {
		return e.Code == verdict.SnapshotsAlone // which cannot separate the sender from the network
	})
	if name == verdict.Unknown && !f.Sampled && !byList && f.Direction == transfer.Up &&
		slices.Contains(f.Verdict.Candidates, verdict.Bottleneck) {
		return "network"
	}
	return string(name)
}

// group returns the connection's group, and creates it while there is room. A group is never removed, so that no
// counter falls.
func (m *Metrics) group(s *Observed) *group {
	key := labelsOf(s.Connection)
	g := m.groups[key]
	if g == nil && len(m.groups) >= maxGroupsReported {
		m.folded++
		key = otherGroup
		g = m.groups[key]
	}
	if g == nil {
		g = &group{limited: map[limitedBy]float64{}, lost: map[lostAt]int64{}, waited: map[waits.Kind]float64{},
			stalled: map[stalledBy]int64{}}
		m.groups[key] = g
	}
	return g
}

// Write prints the counters, in the text format 0.0.4 of Prometheus or as OpenMetrics 1.0.
func (m *Metrics) Write(w io.Writer, openMetrics bool, version string) error {
	p := &openmetrics.Page{Prefix: "fullpipe_watch_", Open: openMetrics}
	p.Family("build_info", "gauge", "", "The version that serves this.")
	p.Sample("build_info", 1, "version", version)
	m.writeGroups(p)
	p.Family("connections", "gauge", "", "Open connections that are followed.")
	p.Sample("connections", float64(m.last.Standing))
	for _, f := range []struct {
		name, help string
		value      float64
	}{
		{"connections_opened", "Connections seen to begin.", float64(m.last.Totals.Opened)},
		{"connections_closed", "Ended connections with final counters of the kernel.", float64(m.last.Totals.Closed)},
		{"connections_unfinished", "Connections that ended without it.", float64(m.last.Totals.Unfinished)},
		{"ends_dropped", "Reports of ended connections that the kernel dropped.", float64(m.last.Lost)},
		{"groups_folded", "Periods of connections that were counted as other.", float64(m.folded)},
	} {
		p.Family(f.name, "counter", "", f.help)
		p.Sample(f.name+"_total", f.value)
	}
	p.Family("path_changes", "counter", "", "Changes of paths that were found, and their ends, by property.")
	for _, what := range slices.Sorted(maps.Keys(m.shifts)) {
		p.Sample("path_changes_total", float64(m.shifts[what]), "metric", what)
	}
	p.Family("read_seconds", "gauge", "seconds", "Duration of the last dump.")
	p.Sample("read_seconds", m.last.Took.Seconds())
	return p.End(w)
}

// writeGroups prints the metrics of each group.
func (m *Metrics) writeGroups(p *openmetrics.Page) {
	groups := slices.SortedFunc(maps.Keys(m.groups), labels.compare)
	p.Family("limited_seconds", "counter", "seconds", "Time of connections that moved payload, by what limited them.")
	for _, key := range groups {
		g := m.groups[key]
		for _, k := range slices.SortedFunc(maps.Keys(g.limited), func(a, b limitedBy) int {
			return cmp.Or(cmp.Compare(a.direction, b.direction), cmp.Compare(a.limiter, b.limiter))
		}) {
			p.Sample("limited_seconds_total", g.limited[k],
				key.list("direction", string(k.direction), "limiter", k.limiter)...)
		}
	}
	p.Family("program_seconds", "counter", "seconds",
		"Time of the programs that limit a direction, by the kind of their waits: of four at once, on Linux.")
	for _, key := range groups {
		g := m.groups[key]
		for _, kind := range slices.Sorted(maps.Keys(g.waited)) {
			p.Sample("program_seconds_total", g.waited[kind], key.list("waits_for", string(kind))...)
		}
	}
	for _, f := range []struct {
		name, help string
		of         func(*group) int64
	}{
		{"sent_bytes", "Payload that the peer acknowledged.", func(g *group) int64 { return g.sent }},
		{"received_bytes", "Payload that arrived in order.", func(g *group) int64 { return g.received }},
		{"retransmitted_bytes", "Retransmitted payload.", func(g *group) int64 { return g.retransmitted }},
	} {
		p.Family(f.name, "counter", "bytes", f.help)
		for _, key := range groups {
			p.Sample(f.name+"_total", float64(f.of(m.groups[key])), key.list()...)
		}
	}
	p.Family("lost_bytes", "counter", "bytes",
		"Payload that this host dropped, or that was retransmitted for packets lost elsewhere, by place.")
	for _, key := range groups {
		g := m.groups[key]
		for _, at := range slices.SortedFunc(maps.Keys(g.lost), func(a, b lostAt) int {
			return cmp.Or(cmp.Compare(a.direction, b.direction), cmp.Compare(a.place, b.place))
		}) {
			p.Sample("lost_bytes_total", float64(g.lost[at]),
				key.list("direction", string(at.direction), "place", at.place)...)
		}
	}
	p.Family("rtt_seconds", "histogram", "seconds", "Smoothed round trips of sending connections, one a period.")
	for _, key := range groups {
		g := m.groups[key]
		writeHistogram(p, "rtt_seconds", g.roundTrips, g.roundTripSum, key)
	}
	p.Family("request_seconds", "histogram", "seconds", "Durations of requests, from segments by eBPF.")
	for _, key := range groups {
		g := m.groups[key]
		writeHistogram(p, "request_seconds", g.requests, g.requestSum, key)
	}
	p.Family("request_stalls", "counter", "", "Stalls of requests, by cause and by the end that owed the packet.")
	for _, key := range groups {
		g := m.groups[key]
		for _, k := range slices.SortedFunc(maps.Keys(g.stalled), func(a, b stalledBy) int {
			return cmp.Or(cmp.Compare(a.cause, b.cause), cmp.Compare(a.side, b.side))
		}) {
			p.Sample("request_stalls_total", float64(g.stalled[k]), key.list("cause", k.cause, "side", k.side)...)
		}
	}
}

// writeHistogram prints a group's histogram, if it has any value.
func writeHistogram(p *openmetrics.Page, name string, buckets [len(tripBounds) + 1]int64, sum float64, key labels) {
	count := int64(0)
	for _, n := range buckets {
		count += n
	}
	if count == 0 {
		return
	}
	below := int64(0)
	for i, bound := range tripBounds {
		below += buckets[i]
		p.Sample(name+"_bucket", float64(below), key.list("le", openmetrics.Number(bound))...)
	}
	p.Sample(name+"_bucket", float64(count), key.list("le", "+Inf")...)
	p.Sample(name+"_sum", sum, key.list()...)
	p.Sample(name+"_count", float64(count), key.list()...)
}
