package watch

import (
	"cmp"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// maxGroupsKept bounds the groups of the current minute. Its heaviest maxGroupsReported are reported.
const maxGroupsKept = 4096

// Minute has the sums of groups of connections over about a minute.
type Minute struct {
	At, Length time.Duration // when it ended, since the watch began
	Lost       uint64        // reports of ends that were dropped in it
	Groups     []GroupMinute // the heaviest first
	// Folded is how many lighter groups the last one, which has no name, is the sum of.
	Folded int
}

// GroupMinute is one group in it.
type GroupMinute struct {
	Group
	Connections int                                // the most in one period
	Ways        map[transfer.Direction]*GroupMoved // that payload was moved in
}

// GroupMoved is the payload of a group in one direction.
type GroupMoved struct {
	Bytes, RetransmittedBytes int64 // payload
	MinRTT                    time.Duration
	// Limited is the time of connections, in seconds, by what limited them. Shares are of
	// its sum. "network" is what the kernel's clocks leave undivided.
	Limited map[string]float64
}

// Bytes is the payload of both directions.
func (g *GroupMinute) Bytes() (sum int64) {
	for _, w := range g.Ways {
		sum += w.Bytes
	}
	return sum
}

// Minutes sums the views of a watch into minutes. Its zero value is empty. It is pure and not safe for concurrent use.
type Minutes struct {
	groups     map[Group]*GroupMinute
	at, length time.Duration
	lost       uint64 // until the minute began
	lostNow    uint64
}

// Add adds a view and returns the minute that it completes, or nil.
func (m *Minutes) Add(v *View) *Minute {
	if m.groups == nil {
		m.groups = map[Group]*GroupMinute{}
	}
	m.at = v.At
	m.lostNow = v.Lost
	m.length = m.length + v.Length
	now := map[*GroupMinute]int{}
	for i := range v.Connections {
		s := &v.Connections[i]
		g := m.group(groupOf(s.Connection))
		now[g]++
		for j := range s.Flows {
			g.add(&s.Flows[j], v.Span(s))
		}
	}
	for g, n := range now {
		g.Connections = max(g.Connections, n)
	}
	if m.length+v.Length/2 < time.Minute {
		return nil
	}
	return m.Flush()
}

func (m *Minutes) group(of Group) *GroupMinute {
	g := m.groups[of]
	if g == nil && len(m.groups) >= maxGroupsKept {
		of = Group{}
		g = m.groups[of]
	}
	if g == nil {
		g = &GroupMinute{Group: of, Ways: map[transfer.Direction]*GroupMoved{}}
		m.groups[of] = g
	}
	return g
}

func (g *GroupMinute) way(d transfer.Direction) *GroupMoved {
	w := g.Ways[d]
	if w == nil {
		w = &GroupMoved{Limited: map[string]float64{}}
		g.Ways[d] = w
	}
	return w
}

func (g *GroupMinute) add(f *Flow, length time.Duration) {
	w := g.way(f.Direction)
	w.Bytes += f.Bytes
	w.RetransmittedBytes += max(f.RetransmittedBytes, 0)
	w.least(f.MinRTT)
	for name, share := range f.Verdict.Shares {
		w.Limited[limiterLabel(f, name)] += share * length.Seconds()
	}
}

func (w *GroupMoved) least(rtt time.Duration) {
	if rtt > 0 && (w.MinRTT == 0 || rtt < w.MinRTT) {
		w.MinRTT = rtt
	}
}

// Flush ends the minute. It returns nil if nothing was watched since the last one.
func (m *Minutes) Flush() *Minute {
	if m.length == 0 {
		return nil
	}
	out := &Minute{At: m.at, Length: m.length, Lost: m.lostNow - m.lost}
	for _, g := range m.groups {
		out.Groups = append(out.Groups, *g)
	}
	slices.SortFunc(out.Groups, func(a, b GroupMinute) int {
		return cmp.Or(cmp.Compare(b.Bytes(), a.Bytes()), cmp.Compare(a.String(), b.String()))
	})
	if len(out.Groups) > maxGroupsReported {
		out.fold()
	}
	*m = Minutes{lost: m.lostNow}
	return out
}

// fold sums the lighter groups into one.
func (m *Minute) fold() {
	rest := GroupMinute{Ways: map[transfer.Direction]*GroupMoved{}}
	for i := range m.Groups[maxGroupsReported:] {
		g := &m.Groups[maxGroupsReported+i]
		rest.Connections += g.Connections
		for d, from := range g.Ways {
			into := rest.way(d)
			into.Bytes = into.Bytes + from.Bytes
			into.RetransmittedBytes = into.RetransmittedBytes + from.RetransmittedBytes
			into.least(from.MinRTT)
			for name, s := range from.Limited {
				into.Limited[name] += s
			}
		}
		m.Folded++
	}
	m.Groups = append(slices.Clip(m.Groups[:maxGroupsReported]), rest)
}
