package flow

import (
	"slices"
	"testing"
)

// TestTable_KeepsTheHeaviest follows more connections than a table may, which carry one byte each, and a
// few heavy ones.
func TestTable_KeepsTheHeaviest(t *testing.T) {
	for _, tt := range []struct {
		name        string
		bound       int
		connections int
		heavy       []int // which of them carry more
		dropped     bool
	}{
		{"below the bound", 100, 100, []int{3}, false},
		{"one above it", 100, 101, []int{0, 50, 100}, true},
		{"far above it", 100, 5000, []int{0, 1, 99, 100, 101, 2500, 4990, 4999}, true},
		{"the least bound", 1, 50, []int{49}, true},
	} {
		table := NewTable(Config{Connections: tt.bound})
		for i := range tt.connections {
			from, at := Endpoint4(0x0a000000+uint32(i), 40000), int64(i)*ms
			table.Add(&Segment{At: at, Src: from, Dst: serverEnd, Seq: 99, Flags: SYN})
			payload := uint32(1)
			if slices.Contains(tt.heavy, i) {
				payload = 1000
			}
			table.Add(&Segment{At: at + 1, Src: from, Dst: serverEnd, Seq: 100, Flags: ACK, Payload: payload})
		}
		all := table.Finish()
		if got := int64(len(all)) + table.Dropped; got != int64(tt.connections) || len(all) > max(tt.bound, 2) ||
			table.Dropped > 0 != tt.dropped || table.byEnds.used != len(all) {
			t.Errorf("%s: %d followed, %d dropped, %d found by their ends", tt.name, len(all), table.Dropped,
				table.byEnds.used)
		}
		var heavy []int
		for _, c := range all {
			if c.bytes() == 1000 {
				heavy = append(heavy, int(c.Client().AddrPort().Addr().As4()[3])|int(c.Client().AddrPort().Addr().As4()[2])<<8)
			}
		}
		if !slices.Equal(heavy, tt.heavy) {
			t.Errorf("%s: of the heavy ones %v are left, want %v", tt.name, heavy, tt.heavy)
		}
	}
}

// TestTable_BoundsGraphs: of too many graphs the heaviest directions keep theirs, and a graph that is used
// again has no points of another direction.
func TestTable_BoundsGraphs(t *testing.T) {
	for _, tt := range []struct {
		name                string
		points, connections int
		bound, most         int // of connections, and of graphs
		heavy               []int
	}{
		{"few", 2000, 100, 0, 100, []int{3}},
		{"many", 2000, 5000, 0, 256, []int{0, 1, 99, 100, 101, 2500, 4990, 4999}},
		{"many that are dropped", 2000, 5000, 100, 256, []int{0, 1, 99, 100, 101, 2500, 4990, 4999}},
		{"two graphs at a time", mostPoints, 50, 0, 2, []int{49}},
	} {
		table := NewTable(Config{Connections: tt.bound, Points: tt.points})
		for i := range tt.connections {
			from, at := Endpoint4(0x0a000000+uint32(i), 40000), int64(i)*ms
			segments := 1
			if slices.Contains(tt.heavy, i) {
				segments = 9
			}
			for n := range segments {
				table.Add(&Segment{At: at + int64(n), Src: from, Dst: serverEnd, Seq: uint32(100 + n), Flags: ACK, Payload: 1})
			}
		}
		graphs, heavy := 0, 0
		for _, c := range table.Finish() {
			for _, d := range c.Directions() {
				if d.Graph == nil {
					continue
				}
				graphs++
				if d.Bytes == 9 {
					heavy++
				}
				if first := d.Graph.Data.Points[0]; first.At < d.First || first.Value > d.Bytes {
					t.Errorf("%s: a direction from %d on begins with the point %+v", tt.name, d.First, first)
				}
			}
		}
		if graphs > tt.most || graphs < min(tt.connections, tt.most)/4 || heavy != len(tt.heavy) {
			t.Errorf("%s: %d graphs, max %d; of heavy directions %d, want %d", tt.name, graphs, tt.most, heavy, len(tt.heavy))
		}
	}
}

// TestTable_LeavesOutDroppedConnections adds nothing to a connection that was dropped, though it was found a moment
// ago, nor to the one that has its memory.
func TestTable_LeavesOutDroppedConnections(t *testing.T) {
	table := NewTable(Config{Connections: 16})
	light := Segment{Src: clientEnd, Dst: serverEnd, Seq: 100, Flags: ACK, Payload: 1}
	other := Segment{Dst: serverEnd, Seq: 100, Flags: ACK, Payload: 9}
	for i := range 15 {
		other.At = int64(i)
		other.Src = Endpoint4(0x0a000000+uint32(i), 1)
		table.Add(&other)
		if i == 0 {
			light.At = 1
			table.Add(&light)
		}
	}
	light.At = 20
	light.Seq = 101
	table.Add(&light)
	other.At = 21
	other.Src = Endpoint4(0x0b000000, 1) // one too many
	table.Add(&other)
	dropped := table.Dropped
	light.At = 22
	light.Seq = 102
	table.Add(&light)
	i := slices.IndexFunc(table.all, func(c *Connection) bool { return c.a == clientEnd || c.b == clientEnd })
	if dropped != 8 || table.Dropped != 8 || i >= 0 {
		t.Errorf("%d dropped, %d later; the light connection is at %d", dropped, table.Dropped, i)
	}
	for _, c := range table.all {
		if c.bytes() != 9 {
			t.Errorf("one of the others carried %d bytes", c.bytes())
		}
	}
}

// TestTable_CountsEachConnectionOnce has many connections at the same time, all alike, and one that becomes heavy when
// it was dropped long ago.
func TestTable_CountsEachConnectionOnce(t *testing.T) {
	const connections, bound, late = 1000, 100, 777
	table := NewTable(Config{Connections: bound})
	at := int64(0)
	add := func(i int, s Segment) {
		at++
		s.At = at
		s.Src = Endpoint4(0x0a000000+uint32(i), 40000)
		s.Dst = serverEnd
		table.Add(&s)
	}
	begun := 0
	for i := range connections {
		add(i, Segment{Seq: 99, Flags: SYN})
	}
	sent := uint32(0)
	for round := range uint32(60) {
		for i := range connections {
			add(i, Segment{Seq: 100 + round*1000, Flags: ACK, Payload: 1000})
		}
		if round > 50 {
			for range 100 {
				add(late, Segment{Seq: 1_000_000 + sent, Flags: ACK, Payload: 1000})
				sent += 1000
			}
		}
		begun = max(begun, int(table.Dropped)+len(table.all))
	}
	if seen := table.Dropped + int64(len(table.all)); seen != connections || begun != connections {
		t.Errorf("%d connections were counted, %d at the most; there are %d", seen, begun, connections)
	}
	heaviest := slices.MaxFunc(table.Finish(), func(x, y *Connection) int { return int(x.bytes() - y.bytes()) })
	if heaviest.Client() != Endpoint4(0x0a000000+late, 40000) {
		t.Errorf("the heaviest that is followed is %v", heaviest.Client())
	}
	dropped := -1
	for i := range connections {
		s := Segment{Src: Endpoint4(0x0a000000+uint32(i), 40000), Dst: serverEnd}
		if c, _ := table.byEnds.find(&s, hashOf(&s)); c == nil {
			dropped = i
		}
	}
	before := table.Dropped + int64(len(table.all))
	add(dropped, Segment{Seq: 5_000_000, Flags: SYN}) // another connection between the same ends
	if seen := table.Dropped + int64(len(table.all)); seen != before+1 {
		t.Errorf("%d connections were counted after another one, %d before", seen, before)
	}
}
