package watch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// maxGroupsKept bounds the groups of the current minute. Its heaviest maxGroupsReported are reported.
const maxGroupsKept = 4096

// groupMinute has the sums of one group of connections in a minute.
type groupMinute struct {
	Group
	connections int                                // the most in one period
	ways        map[transfer.Direction]*groupMoved // that payload was moved in
}

// groupMoved is the payload of a group in one direction.
type groupMoved struct {
	bytes, retransmitted int64
	minRTT               time.Duration
	limited              map[string]float64 // seconds of connections by limiter
}

// bytes returns the payload of both directions.
func (g *groupMinute) bytes() (sum int64) {
	for _, w := range g.ways {
		sum += w.bytes
	}
	return sum
}

// Minutes sums the views of a watch into minutes. Its zero value is empty. It is pure and not safe for concurrent use.
type Minutes struct {
	groups     map[Group]*groupMinute
	at, length time.Duration
	lost       uint64 // until the minute began
	lostNow    uint64
}

// Add adds a view and returns the minute that it completes, or nil.
func (m *Minutes) Add(v *View) *record.WatchMinute {
	if m.groups == nil {
		m.groups = map[Group]*groupMinute{}
	}
	m.at = v.At
	m.lostNow = v.Lost
	m.length = m.length + v.Length
	now := map[*groupMinute]int{}
	for i := range v.Connections {
		s := &v.Connections[i]
		g := m.group(groupOf(s.Connection))
		now[g]++
		for j := range s.Flows {
			g.add(&s.Flows[j], v.Span(s))
		}
	}
	for g, n := range now {
		g.connections = max(g.connections, n)
	}
	if m.length+v.Length/2 < time.Minute {
		return nil
	}
	return m.Flush()
}

func (m *Minutes) group(of Group) *groupMinute {
	g := m.groups[of]
	if g == nil && len(m.groups) >= maxGroupsKept {
		of = Group{}
		g = m.groups[of]
	}
	if g == nil {
		g = &groupMinute{Group: of, ways: map[transfer.Direction]*groupMoved{}}
		m.groups[of] = g
	}
	return g
}

func (g *groupMinute) way(d transfer.Direction) *groupMoved {
	w := g.ways[d]
	if w == nil {
		w = &groupMoved{limited: map[string]float64{}}
		g.ways[d] = w
	}
	return w
}

func (g *groupMinute) add(f *Flow, length time.Duration) {
	w := g.way(f.Direction)
	w.bytes += f.Bytes
	w.retransmitted += max(f.RetransmittedBytes, 0)
	w.least(f.MinRTT)
	for name, share := range f.Verdict.Shares {
		w.limited[limiterLabel(f, name)] += share * length.Seconds()
	}
}

func (w *groupMoved) least(rtt time.Duration) {
	if rtt > 0 && (w.minRTT == 0 || rtt < w.minRTT) {
		w.minRTT = rtt
	}
}

// Flush ends the minute; At is since the watch began. It returns nil if nothing was watched since the last one.
func (m *Minutes) Flush() *record.WatchMinute {
	if m.length == 0 {
		return nil
	}
	groups := slices.SortedFunc(maps.Values(m.groups), func(a, b *groupMinute) int {
		return cmp.Or(cmp.Compare(b.bytes(), a.bytes()), cmp.Compare(a.String(), b.String()))
	})
	out := &record.WatchMinute{At: units.Duration(m.at), Length: units.Duration(m.length),
		LostEnds: int64(m.lostNow - m.lost), Groups: []record.WatchGroup{}}
	for _, g := range groups[:min(len(groups), maxGroupsReported)] {
		out.Groups = append(out.Groups, g.kept())
	}
	if lighter := groups[len(out.Groups):]; len(lighter) > 0 {
		rest := fold(lighter).kept()
		rest.Folded = len(lighter)
		out.Groups = append(out.Groups, rest)
	}
	*m = Minutes{lost: m.lostNow}
	return out
}

// fold sums groups into one without a name.
func fold(groups []*groupMinute) *groupMinute {
	rest := &groupMinute{ways: map[transfer.Direction]*groupMoved{}}
	for _, g := range groups {
		rest.connections += g.connections
		for d, from := range g.ways {
			into := rest.way(d)
			into.bytes = into.bytes + from.bytes
			into.retransmitted = into.retransmitted + from.retransmitted
			into.least(from.minRTT)
			for name, s := range from.limited {
				into.limited[name] += s
			}
		}
	}
	return rest
}

// kept returns a group as it is stored.
func (g *groupMinute) kept() record.WatchGroup {
	out := record.WatchGroup{Owner: g.Owner, Port: int(g.Port), Connections: g.connections,
		Directions: []record.WatchGroupDirection{}}
	if g.Network.IsValid() {
		out.Network = g.Network.String()
	}
	for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
		w := g.ways[d]
		if w == nil {
			continue
		}
		way := record.WatchGroupDirection{Direction: d, Bytes: w.bytes, RetransmittedBytes: w.retransmitted,
			RTTMin: units.Duration(w.minRTT), Shares: map[string]float64{}}
		for _, s := range w.limited {
			way.MovingS += s
		}
		for name, s := range w.limited {
			if way.MovingS > 0 {
				way.Shares[name] = s / way.MovingS
			}
		}
		out.Directions = append(out.Directions, way)
	}
	return out
}
