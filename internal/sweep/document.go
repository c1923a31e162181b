package sweep

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// document returns the document of the grid so far. Its cells are in the order of Axes.Cells.
func (l *loop) document() *record.Sweep {
	s := l.schedule
	doc := &record.Sweep{Peer: l.cfg.Name, Near: l.near, Far: l.far, Axes: l.cfg.Axes.Record(),
		Paths: s.Paths(), Cells: s.results(), RunS: l.cfg.Time.Seconds(),
		PrecisionRatio: s.rules.Precision, BudgetS: s.rules.Budget.Seconds(), Seed: s.rules.Seed,
		ElapsedS: s.elapsed.Seconds(), Complete: true}
	for i := range s.cells {
		doc.Complete = doc.Complete && s.Done(i)
	}
	for i := range s.runs {
		doc.BytesSent += s.runs[i].Bytes
	}
	for _, d := range l.cfg.Axes.Directions {
		judge(doc, d)
	}
	return doc
}

// results returns all cells with the results of their runs.
func (s *Schedule) results() []record.SweepCell {
	cells := make([]record.SweepCell, len(s.cells))
	middles := make([]*Trial, len(s.cells)) // the good run closest to the cell's median
	for i, setup := range s.cells {
		cells[i] = record.SweepCell{SweepSetup: setup, Refused: s.refused[i], Unsettled: len(s.logs[i]) > 0,
			Tight: s.precise(i)}
	}
	for i := range s.runs {
		r := &s.runs[i]
		c := &cells[r.Cell]
		if r.Problem != "" {
			c.Problems = append(c.Problems, r.Problem)
			continue
		}
		c.Runs = append(c.Runs, r.GoodputBps)
		c.Unsettled = c.Unsettled && !r.Settled
		off := func(r *Trial) float64 { return math.Abs(math.Log(r.GoodputBps / s.mid(r.Cell))) }
		if m := middles[r.Cell]; m == nil || off(r) < off(m) {
			middles[r.Cell] = r
		}
	}
	for i, r := range middles {
		if r == nil {
			continue
		}
		c := &cells[i]
		interval := s.Interval(i)
		c.GoodputBps = interval.Mid
		if len(c.Runs) > 1 {
			c.CI95Bps = &[2]float64{interval.Low, interval.High}
		}
		c.Limiter, c.Subtype = s.Limiter(i)
		c.Confidence = verdict.Low // the runs disagree
		if r.Limiter == c.Limiter && r.Subtype == c.Subtype {
			c.Confidence = r.Confidence
		}
		c.SendBuffer = record.NewBuffer(r.Send)
		c.ReceiveBuffer = record.NewBuffer(r.Receive)
		c.Retransmitted = r.Retransmitted
	}
	return cells
}

// judge marks the best measured cell of a direction and the one with the smallest buffers that reach search.Enough of
// it, and adds the remedies for what limits the best.
func judge(doc *record.Sweep, d transfer.Direction) {
	var best, enough *record.SweepCell
	for i := range doc.Cells {
		c := &doc.Cells[i]
		if c.Direction == d && c.Measured() && (best == nil || c.GoodputBps > best.GoodputBps) {
			best = c
		}
	}
	if best == nil {
		return
	}
	for i := range doc.Cells {
		c := &doc.Cells[i]
		if c.Direction == d && c.Measured() && c.GoodputBps >= search.Enough*best.GoodputBps &&
			(enough == nil || memory(c.SweepSetup) < memory(enough.SweepSetup)) {
			enough = c
		}
	}
	best.Best = true
	enough.Enough = true
	for i := range doc.Paths {
		if p := &doc.Paths[i]; p.Direction == d && best.Limiter != "" {
			p.Fix = advice.Fixes(verdict.Verdict{Limiter: best.Limiter, Subtype: best.Subtype},
				advice.Facts{GoodputBps: best.GoodputBps, RTTS: p.RTTMin.Seconds(), Congestion: p.Congestion,
					MSSBytes: p.MSSBytes})
		}
	}
}

// memory returns the bytes of buffers that a setup requests; automatic counts as more than any size.
func memory(s record.SweepSetup) float64 {
	if s.Send == 0 || s.Receive == 0 {
		return math.Inf(1)
	}
	return float64(s.Send) + float64(s.Receive)
}
