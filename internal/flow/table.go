package flow

import "slices"

// Config bounds what a Table keeps: about a gigabyte at the very worst with its zero
// value, which keeps no graphs.
type Config struct {
	// Connections is how many are followed; more are counted in Unfollowed. 0 is
	// MostConnections.
	Connections int
	// Slices is how many a direction keeps; when there are more, neighbours are merged.
	// 0 is 256. When all directions together have a million and a half, new ones of a
	// direction past an eighth of that are merged.
	Slices int
	// Points is how many points each line of a direction's graph keeps; 0 keeps no graphs.
	Points int
	// Wanted, when not nil, says which connections are followed at all.
	Wanted func(a, b Endpoint) bool
}

// MostConnections are followed where nothing else is asked for.
const MostConnections = 120_000

// Table follows the connections of one capture. Segments go in by time with Add; Finish
// gives the connections.
type Table struct {
	cfg    Config
	byEnds map[ends]*Connection
	recent [1 << 12]*Connection // by a hash of the ends
	slices int                  // that all directions keep
	all    []*Connection

	Segments   int64
	Duplicates int64 // copies of a segment from a second interface
	Unfollowed int64 // segments of connections past the bound
}

// ends are a connection's two endpoints, the lesser first.
type ends struct{ a, b Endpoint }

// NewTable returns an empty Table.
func NewTable(cfg Config) *Table {
	if cfg.Connections <= 0 {
		cfg.Connections = MostConnections
	}
	if cfg.Slices <= 0 {
		cfg.Slices = 256
	}
	cfg.Slices = max(cfg.Slices, 8)
	return &Table{cfg: cfg, byEnds: map[ends]*Connection{}}
}

// Add takes the next segment. It keeps nothing of s.
func (t *Table) Add(s *Segment) {
	t.Segments++
	a, b, side := &s.Src, &s.Dst, 0
	if b.less(a) {
		a, b, side = b, a, 1
	}
	slot := &t.recent[hash(a, b)%uint64(len(t.recent))]
	c := *slot
	if c == nil || !c.a.is(a) || !c.b.is(b) {
		if c = t.find(ends{*a, *b}, s); c == nil {
			return
		}
		*slot = c
	}
	if c.ended(s, side) {
		if c = t.begin(ends{*a, *b}, s); c == nil {
			return
		}
		*slot = c
	}
	if !c.add(s, side) {
		t.Duplicates++
	}
}

// TooBig takes an ICMP message saying that a segment from src to dst was larger than mtu,
// which is 0 where the router did not say.
func (t *Table) TooBig(src, dst Endpoint, mtu int) {
	e, side := ends{src, dst}, 0
	if dst.less(&src) {
		e, side = ends{dst, src}, 1
	}
	if c := t.byEnds[e]; c != nil {
		c.tooBig[side]++
		if mtu > 0 {
			c.routerMTU[side] = mtu
		}
	}
}

func (t *Table) find(e ends, s *Segment) *Connection {
	if c := t.byEnds[e]; c != nil {
		return c
	}
	if t.cfg.Wanted != nil && !t.cfg.Wanted(e.a, e.b) {
		return nil
	}
	return t.begin(e, s)
}

func (t *Table) begin(e ends, s *Segment) *Connection {
	if len(t.all) >= t.cfg.Connections {
		t.Unfollowed++
		return nil
	}
	c := newConnection(e, s, t)
	t.byEnds[e] = c
	t.all = append(t.all, c)
	return c
}

// Finish ends all timelines and returns the connections in the order of their beginnings.
func (t *Table) Finish() []*Connection {
	for _, c := range t.all {
		c.finish()
	}
	slices.SortStableFunc(t.all, func(a, b *Connection) int { return int(min(max(a.Started-b.Started, -1), 1)) })
	return t.all
}

// Hash spreads connections over tables and processors; both directions hash alike.
func (s *Segment) Hash() uint64 {
	if s.Dst.less(&s.Src) {
		return hash(&s.Dst, &s.Src)
	}
	return hash(&s.Src, &s.Dst)
}

func hash(a, b *Endpoint) uint64 {
	const k = 0x9e3779b97f4a7c15
	h := (a.Lo ^ a.Hi<<1) * k
	h = (h ^ h>>29 ^ b.Lo ^ b.Hi<<1) * k
	h = (h ^ h>>32 ^ uint64(a.Port)<<16 ^ uint64(b.Port)) * k
	return h ^ h>>31
}
