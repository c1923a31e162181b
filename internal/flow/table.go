package flow

import "slices"

// Config bounds what a Table keeps: some 130 MB with its zero value, which keeps no graphs, where
// connections are short, and twice that at the very worst.
type Config struct {
	// Connections is how many are followed at a time. When there are more, those with the fewest bytes
	// are dropped. 0 is MostConnections.
	Connections int
	// Shares is how many tables share the connections of the capture, and these bounds; see
	// Segment.Share. 0 is 1.
	Shares int
	// Slices is how many a direction keeps; when there are more, neighbours are merged.
	// 0 is 256. When all directions together have a million and a half, new ones of a
	// direction past an eighth of that are merged.
	Slices int
	// Points is how many points each line of a direction's graph keeps; 0 keeps no graphs. When all graphs together
	// may keep half a million a line, the directions with the fewest bytes lose theirs.
	Points int
	// Passes is how many segments of each end are kept to be matched with another tap's; 0
	// keeps none.
	Passes int
	// Wanted, when not nil, says which connections are followed at all.
	Wanted func(a, b Endpoint) bool
}

// MostConnections are followed where nothing else is asked for: a short connection takes 6 kB.
const MostConnections = 20_000

// Table follows the connections of one capture. Segments go in by time with Add; Finish
// gives the connections.
type Table struct {
	cfg    Config
	byEnds index
	last   *Connection // of the last segment: they often come several at a time
	wide   int         // sides that recognise copies of a second way
	slices int         // that all directions keep
	all    []*Connection
	light  dismissed
	drawn  []*Direction // that have a graph, in the order of their beginnings

	// Dropped memory, to be used again.
	spare           []*Connection
	spareDirections []*Direction
	spareGraphs     []*Graph

	Segments   int64
	Duplicates int64 // copies of a segment from a second interface
	Dropped    int64 // connections that made room for others, and were not followed again
	Unwanted   int64 // segments of connections that Config.Wanted refuses
}

// ends are a connection's two endpoints, the lesser first.
type ends struct{ a, b Endpoint }

// NewTable returns an empty Table.
func NewTable(cfg Config) *Table {
	if cfg.Connections <= 0 {
		cfg.Connections = MostConnections
	}
	cfg.Shares = max(cfg.Shares, 1)
	cfg.Connections = max(cfg.Connections/cfg.Shares, 2)
	if cfg.Slices <= 0 {
		cfg.Slices = 256
	}
	cfg.Slices = max(cfg.Slices, 8)
	t := &Table{cfg: cfg}
	t.byEnds.grow()
	return t
}

// Add takes the next segment. It keeps nothing of s.
func (t *Table) Add(s *Segment) {
	c := t.last
	side := c.sentBy(s)
	if side < 0 || s.Flags&SYN != 0 || s.Options&IsTooBig != 0 {
		c, side = t.place(s)
		if c == nil {
			return
		}
		t.last = c
	}
	switch {
	case c.before != nil:
		c = c.viewOf(s, side)
	case s.At-c.Started <= viewsWithin && c.isOtherView(s, side):
		c, side = t.beginView(c, s)
	}
	t.Segments++
	me := &c.sides[0]
	peer := &c.sides[1]
	if side == 1 {
		me, peer = peer, me
	}
	if !c.add(s, me, peer) {
		t.Duplicates++
		c.Duplicates++
		return
	}
	c.followTurns(s, side)
}

// place returns the connection that s belongs to, which may be a new one, and the side that sent s. It returns nil
// where there is nothing to add to.
func (t *Table) place(s *Segment) (c *Connection, side int) {
	h := hashOf(s)
	c, side = t.byEnds.find(s, h)
	if s.Options&IsTooBig != 0 {
		if c != nil {
			c.tooLarge(s, side)
		}
		return nil, side
	}
	if c == nil && t.light.take(s, h) {
		t.Segments++
		return nil, side
	}
	if c == nil || c.ended(s, side) && (c.before == nil || c.before.ended(s, side)) {
		old := c
		dropped := t.Dropped
		c, side = t.begin(s, h)
		if c == nil {
			t.Segments++
			return nil, side
		}
		if dropped == t.Dropped { // else the old one's memory may be another's
			c.secondView(old, s)
		}
	}
	return c, side
}

// begin follows a new connection. It returns nil for one that is not wanted.
func (t *Table) begin(s *Segment, h uint64) (c *Connection, side int) {
	e, side := endsOf(s)
	if t.cfg.Wanted != nil && !t.cfg.Wanted(e.a, e.b) {
		t.Unwanted++
		return nil, side
	}
	if len(t.all) >= t.cfg.Connections {
		t.dropLightest()
	}
	again, carried := t.light.follow(s, h)
	if again {
		t.Dropped--
	}
	c = newConnection(e, s, t)
	c.carried = carried
	t.byEnds.put(c, h)
	t.all = append(t.all, c)
	return c, side
}

func endsOf(s *Segment) (e ends, side int) {
	if s.Dst.less(&s.Src) {
		return ends{s.Dst, s.Src}, 1
	}
	return ends{s.Src, s.Dst}, 0
}

// Finish ends all timelines and returns the connections in the order of their beginnings.
func (t *Table) Finish() []*Connection {
	t.mergeViews()
	for _, c := range t.all {
		c.finish()
	}
	slices.SortStableFunc(t.all, func(a, b *Connection) int { return int(min(max(a.Started-b.Started, -1), 1)) })
	return t.all
}

// Share returns which of several tables follows the connection of s.
func (s *Segment) Share(of int) int { return int(s.spread() << 12 >> 32 * uint64(of) >> 32) }

// spread is a hash of the ends, the same for both directions and in each process. Its high half is the better one.
func (s *Segment) spread() uint64 {
	const k = 0x9e3779b97f4a7c15
	return (s.Src.Lo ^ s.Dst.Lo ^ s.Src.Hi ^ s.Dst.Hi ^ uint64(s.Src.Port^s.Dst.Port)<<40) * k
}
