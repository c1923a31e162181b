package flow

// Graph is what a time-sequence graph shows of a direction, thinned as it grows: a line
// keeps its last value in each cell of time, and the cells double when there are too many.
type Graph struct {
	Data, Acks, Edge       Line // positions, as the tap saw them
	Outstanding, Window    Line // bytes, as the sender saw them
	RTT                    Line // nanoseconds
	Retransmissions, SACKs Marks
}

// Point is a value at a time from the connection's start.
type Point struct{ At, Value int64 }

// Line is a thinned series; no cell is longer than Cell nanoseconds.
type Line struct {
	Points []Point
	Cell   int64
	limit  int
}

// Marks are ranges of positions at times; past the limit every other one is dropped, and
// so on.
type Marks struct {
	Marks []Mark
	Seen  int64
	every int64
	limit int
}

// Mark is a range of payload positions at a time.
type Mark struct{ At, From, To int64 }

// reset empties a graph for its next use and returns it. points limits the points of each line.
func (g *Graph) reset(points int) *Graph {
	for _, l := range []*Line{&g.Data, &g.Acks, &g.Edge, &g.Outstanding, &g.Window, &g.RTT} {
		*l = Line{Points: l.Points[:0], limit: max(points, 16)}
	}
	for _, m := range []*Marks{&g.Retransmissions, &g.SACKs} {
		*m = Marks{Marks: m.Marks[:0], limit: max(points/2, 16), every: 1}
	}
	return g
}

func (l *Line) add(at, value int64) {
	if n := len(l.Points); n > 0 && (at-l.Points[n-1].At < l.Cell || at == l.Points[n-1].At) {
		l.Points[n-1].Value = value
		return
	}
	l.Points = append(l.Points, Point{at, value})
	if len(l.Points) < l.limit {
		return
	}
	span := at - l.Points[0].At
	l.Cell = max(2*l.Cell, span*2/int64(l.limit), 1)
	kept := l.Points[:1]
	for _, p := range l.Points[1:] {
		if last := &kept[len(kept)-1]; p.At-last.At < l.Cell {
			last.Value = p.Value
		} else {
			kept = append(kept, p)
		}
	}
	l.Points = kept
}

func (m *Marks) add(at, from, to int64) {
	m.Seen++
	if m.Seen%m.every != 0 {
		return
	}
	m.Marks = append(m.Marks, Mark{at, from, to})
	if len(m.Marks) < m.limit {
		return
	}
	kept := m.Marks[:0]
	for i := 1; i < len(m.Marks); i += 2 {
		kept = append(kept, m.Marks[i])
	}
	m.Marks = kept
	m.every *= 2
}
