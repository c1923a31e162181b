package text

import (
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// SweepPlane is a part of the grid that is shown as one matrix.
type SweepPlane struct {
	Title    string
	Across   SweepAxis // columns
	Down     SweepAxis // rows
	Cells    [][]*record.SweepCell
	Path     *record.SweepPath
	Receives bool // the rows are receive buffers, else write sizes
}

type SweepAxis struct {
	Name   string
	Values []int // bytes; 0 is automatic
}

// distinct lists the values that cells have, in the order of their first appearance.
func distinct[T comparable](cells []record.SweepCell, of func(record.SweepSetup) T) (all []T) {
	seen := map[T]bool{}
	for i := range cells {
		if v := of(cells[i].SweepSetup); !seen[v] {
			seen[v] = true
			all = append(all, v)
		}
	}
	return all
}

// sweepGrid has the common properties of the planes of one sweep.
type sweepGrid struct {
	at      map[record.SweepSetup]*record.SweepCell
	sends   []int // across
	rows    []int // down
	others  []int // one plane each
	byWrite bool  // the rows are write sizes
}

func newSweepGrid(s *record.Sweep) *sweepGrid {
	g := &sweepGrid{at: map[record.SweepSetup]*record.SweepCell{}}
	for i := range s.Cells {
		g.at[s.Cells[i].SweepSetup] = &s.Cells[i]
	}
	g.sends = distinct(s.Cells, func(s record.SweepSetup) int { return s.Send })
	g.rows = distinct(s.Cells, func(s record.SweepSetup) int { return s.Receive })
	g.others = distinct(s.Cells, func(s record.SweepSetup) int { return s.Write })
	g.byWrite = len(g.rows) == 1 && len(g.others) > 1
	if g.byWrite {
		g.rows, g.others = g.others, g.rows
	}
	return g
}

// SweepPlanes cuts the grid into matrices: send buffers across and receive buffers down, or
// write sizes down where there is only one receive buffer. Each combination of the other
// dimensions is a matrix. A place without a cell is shown as not measured.
func SweepPlanes(s *record.Sweep) (planes []SweepPlane) {
	g := newSweepGrid(s)
	for _, d := range distinct(s.Cells, func(s record.SweepSetup) transfer.Direction { return s.Direction }) {
		var path *record.SweepPath
		if i := slices.IndexFunc(s.Paths, func(p record.SweepPath) bool { return p.Direction == d }); i >= 0 {
			path = &s.Paths[i]
		}
		for _, cc := range distinct(s.Cells, func(s record.SweepSetup) string { return s.Congestion }) {
			for _, other := range g.others {
				p := g.plane(d, cc, other)
				p.Path = path
				planes = append(planes, p)
			}
		}
	}
	return planes
}

// plane returns the matrix of one direction, one congestion control and one value of the third
// axis.
func (g *sweepGrid) plane(d transfer.Direction, congestion string, other int) SweepPlane {
	name := "receive buffer"
	fixed := "writes of"
	if g.byWrite {
		name = "write size"
		fixed = "receive buffer"
	}
	parts := []string{Heading(d)}
	if congestion != "" {
		parts = append(parts, congestion)
	}
	if len(g.others) > 1 || other > 0 {
		parts = append(parts, fixed+" "+record.SweepSize(other))
	}
	p := SweepPlane{Title: strings.Join(parts, ", "), Across: SweepAxis{"send buffer", g.sends},
		Down: SweepAxis{name, g.rows}, Receives: !g.byWrite}
	for _, row := range g.rows {
		cells := make([]*record.SweepCell, len(g.sends))
		for i, send := range g.sends {
			setup := record.SweepSetup{Direction: d, Congestion: congestion, Send: send, Receive: row, Write: other}
			if g.byWrite {
				setup.Receive = other
				setup.Write = row
			}
			cells[i] = g.at[setup]
			if cells[i] == nil {
				cells[i] = &record.SweepCell{SweepSetup: record.SweepSetup{Direction: d, Congestion: congestion}}
			}
		}
		p.Cells = append(p.Cells, cells)
	}
	return p
}
