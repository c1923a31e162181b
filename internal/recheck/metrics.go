package recheck

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/openmetrics"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Metrics are the counters of a process and the newest result of each path. It is not safe for concurrent use.
type Metrics struct {
	tests  map[testKind]int64
	events map[eventKind]int64
	bytes  map[string]int64 // by peer
	took   map[string]time.Duration
	newest map[string]newest
}

// newest is the state of a path after its last visit.
type newest struct {
	standings []record.RecheckDirection
	at        time.Time // of the newest result
}

type testKind struct{ peer, origin, outcome string }

type eventKind struct{ peer, event, metric string }

// NewMetrics returns empty Metrics.
func NewMetrics() *Metrics {
	return &Metrics{tests: map[testKind]int64{}, events: map[eventKind]int64{}, bytes: map[string]int64{},
		took: map[string]time.Duration{}, newest: map[string]newest{}}
}

// Add counts a visit.
func (m *Metrics) Add(v Visit) {
	k := testKind{v.Peer, "scheduled", "done"}
	if v.Retest {
		k.origin = "retest"
	}
	switch {
	case v.Skip != "":
		k.outcome = string(v.Skip)
	case v.Err != nil:
		k.outcome = "failed"
	}
	if !v.Late {
		m.tests[k]++
	}
	for _, e := range v.Events {
		k := eventKind{v.Peer, string(e.Event), e.Metric}
		if e.Event == Rise {
			k.event = string(changepoint.Dipped) // one word for both in the metric
		}
		m.events[k]++
	}
	now := newest{v.Path.Standings(), m.newest[v.Peer].at}
	if v.Result != nil && !v.Late {
		m.bytes[v.Peer] += v.Result.Cost.Bytes
		m.took[v.Peer] += v.Result.Cost.Time
		now.at = v.Result.At
	}
	m.newest[v.Peer] = now
}

// Write prints a page.
func (m *Metrics) Write(w io.Writer, open bool, version string) error {
	p := &openmetrics.Page{Prefix: "fullpipe_recheck_", Open: open}
	p.Family("build_info", "gauge", "", "The version that serves this.")
	p.Sample("build_info", 1, "version", version)
	p.Family("tests", "counter", "", "Due tests by outcome.")
	for _, k := range slices.SortedFunc(maps.Keys(m.tests), func(a, b testKind) int {
		return cmp.Or(cmp.Compare(a.peer, b.peer), cmp.Compare(a.origin, b.origin), cmp.Compare(a.outcome, b.outcome))
	}) {
		p.Sample("tests_total", float64(m.tests[k]), "peer", k.peer, "origin", k.origin, "outcome", k.outcome)
	}
	p.Family("events", "counter", "", "Reported events.")
	for _, k := range slices.SortedFunc(maps.Keys(m.events), func(a, b eventKind) int {
		return cmp.Or(cmp.Compare(a.peer, b.peer), cmp.Compare(a.event, b.event), cmp.Compare(a.metric, b.metric))
	}) {
		p.Sample("events_total", float64(m.events[k]), "peer", k.peer, "event", k.event, "metric", k.metric)
	}
	p.Family("test_bytes", "counter", "bytes", "Payload of tests.")
	for _, peer := range slices.Sorted(maps.Keys(m.bytes)) {
		p.Sample("test_bytes_total", float64(m.bytes[peer]), "peer", peer)
	}
	p.Family("test_seconds", "counter", "seconds", "Time that tests took.")
	for _, peer := range slices.Sorted(maps.Keys(m.took)) {
		p.Sample("test_seconds_total", m.took[peer].Seconds(), "peer", peer)
	}
	m.standings(p)
	return p.End(w)
}

// standings prints the newest result of each direction of each path.
func (m *Metrics) standings(p *openmetrics.Page) {
	peers := slices.Sorted(maps.Keys(m.newest))
	each := func(name, unit, help string, of func(record.RecheckDirection) *float64) {
		p.Family(name, "gauge", unit, help)
		for _, peer := range peers {
			for _, s := range m.newest[peer].standings {
				if v := of(s); v != nil {
					p.Sample(name, *v, "peer", peer, "direction", s.Direction)
				}
			}
		}
	}
	each("goodput_bps", "", "Payload a second that the newest test got, in bits.",
		func(s record.RecheckDirection) *float64 { return s.GoodputBps })
	each("usual_bps", "", "The median of the results before, where 12 are known.",
		func(s record.RecheckDirection) *float64 { return s.UsualBps })
	each("rtt_min_seconds", "seconds", "The shortest round trip of the newest test.",
		func(s record.RecheckDirection) *float64 { return s.RTTMinS })
	each("dip", "", "1 while the level differs and it is not known whether that stays.",
		func(s record.RecheckDirection) *float64 {
			if s.State == changepoint.Dip {
				return new(1.0)
			}
			return new(0.0)
		})
	p.Family("newest_test_timestamp_seconds", "gauge", "seconds", "When the newest result was measured.")
	for _, peer := range peers {
		if at := m.newest[peer].at; !at.IsZero() {
			p.Sample("newest_test_timestamp_seconds", float64(at.UnixNano())/1e9, "peer", peer)
		}
	}
}
