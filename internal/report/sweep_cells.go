package report

import "github.com/fullpipe-net/fullpipe/internal/record"

// sweepCells pairs the measured cells of two sweeps. The cells of a pair have the same values on
// each axis with several values. An axis with one value in each sweep may differ: sweeps of
// default and tuned buffers do.
func sweepCells(a, b *record.Sweep) (cells []record.DifferenceCell) {
	varied := variedAxes(a.Cells, variedAxes(b.Cells, record.SweepSetup{}))
	second := map[record.SweepSetup]*record.SweepCell{}
	for i := range b.Cells {
		if c := &b.Cells[i]; c.Measured() {
			second[alongAxes(c.SweepSetup, varied)] = c
		}
	}
	for i := range a.Cells {
		c := &a.Cells[i]
		other := second[alongAxes(c.SweepSetup, varied)]
		if c.Measured() && other != nil {
			cells = append(cells, record.DifferenceCell{First: cellFigure(c), Second: cellFigure(other),
				Factor: other.GoodputBps / c.GoodputBps})
		}
	}
	return cells
}

func cellFigure(c *record.SweepCell) record.DifferenceCellFigure {
	return record.DifferenceCellFigure{SweepSetup: c.SweepSetup, GoodputBps: c.GoodputBps, Limiter: c.Limiter}
}

// variedAxes marks, with values other than zero, the axes on which cells differ, and keeps marks.
func variedAxes(cells []record.SweepCell, marked record.SweepSetup) record.SweepSetup {
	for i := range cells {
		first := cells[0].SweepSetup
		one := cells[i].SweepSetup
		if one.Congestion != first.Congestion {
			marked.Congestion = "varied"
		}
		for _, axis := range []struct {
			differs bool
			mark    *int
		}{{one.Send != first.Send, &marked.Send}, {one.Receive != first.Receive, &marked.Receive},
			{one.Write != first.Write, &marked.Write}} {
			if axis.differs {
				*axis.mark = 1
			}
		}
	}
	return marked
}

// alongAxes returns a setup's direction and its values on the marked axes.
func alongAxes(s, marked record.SweepSetup) record.SweepSetup {
	out := record.SweepSetup{Direction: s.Direction}
	if marked.Congestion != "" {
		out.Congestion = s.Congestion
	}
	if marked.Send != 0 {
		out.Send = s.Send
	}
	if marked.Receive != 0 {
		out.Receive = s.Receive
	}
	if marked.Write != 0 {
		out.Write = s.Write
	}
	return out
}
