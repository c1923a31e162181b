package capture

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// Traffic is what a live capture has seen until now.
type Traffic struct {
	Packets     int64
	Connections int           // with data or without
	Span        time.Duration // from the first TCP segment on
	// Busiest carried most since the last time, the first of them most of all.
	Busiest []Carried
}

// Carried is one direction of one connection since the last time.
type Carried struct {
	From, To netip.AddrPort
	Bps      float64 // payload, repeated segments included
}

// tally counts bytes by connection for a live view, without the timelines, which belong to the workers.
type tally struct {
	wanted      func(a, b flow.Endpoint) bool
	seen        map[way]int64 // payload since the last time
	first, last int64         // times, nanoseconds since 1970
}

type way struct{ from, to flow.Endpoint }

const (
	reportPeriod = time.Second
	maxBusiest   = 5
	maxWays      = 240_000
)

func newTally(wanted func(a, b flow.Endpoint) bool) *tally {
	return &tally{wanted: wanted, seen: map[way]int64{}}
}

func (t *tally) add(s *flow.Segment) {
	w := way{s.Src, s.Dst}
	if _, known := t.seen[w]; !known {
		if t.wanted != nil && !t.wanted(s.Src, s.Dst) || len(t.seen) >= maxWays {
			return
		}
	}
	t.seen[w] += int64(s.Payload)
	if t.first == 0 {
		t.first = s.At
		t.last = s.At
	}
}

// due reports whether a second of packets has gone by.
func (t *tally) due(at int64) bool { return t.first != 0 && at-t.last >= int64(reportPeriod) }

// traffic returns the traffic of the last second, and begins the next one.
func (t *tally) traffic(packets, at int64) Traffic {
	seen := Traffic{Packets: packets, Span: time.Duration(at - t.first)}
	span := time.Duration(at - t.last).Seconds()
	for w, bytes := range t.seen {
		if _, back := t.seen[way{w.to, w.from}]; !back || cmp.Compare(w.from.Port, w.to.Port) < 0 ||
			w.from.Port == w.to.Port &&
				w.from.AddrPort().Compare(w.to.AddrPort()) < 0 {
			seen.Connections++
		}
		if bytes > 0 {
			seen.Busiest = append(seen.Busiest, Carried{w.from.AddrPort(), w.to.AddrPort(), float64(bytes) * 8 / span})
			t.seen[w] = 0
		}
	}
	slices.SortFunc(seen.Busiest, func(a, b Carried) int {
		return cmp.Or(cmp.Compare(b.Bps, a.Bps), a.From.Compare(b.From), a.To.Compare(b.To))
	})
	seen.Busiest = seen.Busiest[:min(len(seen.Busiest), maxBusiest)]
	t.last = at
	return seen
}
