package report

import (
	"math"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/record/guard"
	"github.com/fullpipe-net/fullpipe/internal/remedy"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/sweep"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Sweep describes a sweep.
func Sweep(h record.Header, r *sweep.Result) *record.Sweep {
	a := r.Identity.Axes
	doc := &record.Sweep{Header: h, Peer: r.Identity.Peer, Near: sweepHost(r.Ends.Near), Far: sweepHost(r.Ends.Far),
		Paths: slices.Clone(r.Paths), RunS: r.Identity.Time.Seconds(),
		PrecisionRatio: r.Rules.Precision, BudgetS: r.Rules.Budget.Seconds(), Seed: r.Identity.Seed,
		ElapsedS: r.Elapsed.Seconds(), BytesSent: r.Bytes, Complete: r.Complete}
	doc.Axes.SendBuffers, doc.Axes.SendAutomatic = fixed(a.Send)
	doc.Axes.ReceiveBuffers, doc.Axes.ReceiveAutomatic = fixed(a.Receive)
	doc.Axes.Writes, doc.Axes.WriteAutomatic = fixed(a.Write)
	doc.Axes.Directions = a.Directions
	if len(a.Congestion) > 1 || a.Congestion[0] != "" {
		doc.Axes.Congestion = a.Congestion
	}
	for i := range r.Cells {
		doc.Cells = append(doc.Cells, newSweepCell(&r.Cells[i]))
	}
	for _, d := range a.Directions {
		mark(doc, d)
	}
	guard.Sweep(doc)
	return doc
}

func sweepHost(h *sweep.Host) *record.Host {
	if h == nil {
		return nil
	}
	return &record.Host{Address: h.Address, Kernel: h.Kernel}
}

// fixed are the sizes of an axis, without automatic.
func fixed(axis []int) (sizes []int, automatic bool) {
	sizes = []int{}
	for _, v := range axis {
		if v > 0 {
			sizes = append(sizes, v)
		}
	}
	return sizes, len(sizes) < len(axis)
}

func newSweepCell(m *sweep.Measured) record.SweepCell {
	c := record.SweepCell{Direction: m.Direction, Congestion: m.Congestion, SendBufferBytes: known(m.Send),
		ReceiveBufferBytes: known(m.Receive),
		WriteBytes:         known(m.Write), Tight: m.Tight, Limiter: m.Limiter, Subtype: m.Subtype, Refused: m.Refused,
		Problems: m.Problems}
	if m.Predicted != nil {
		c.GoodputBps = rate(m.Predicted.Mid)
		c.Predicted = true
		c.CI95Bps = &[2]float64{m.Predicted.Low, m.Predicted.High}
		return c
	}
	if len(m.Runs) == 0 {
		return c
	}
	c.GoodputBps = rate(m.Interval.Mid)
	c.Unsettled = true
	if len(m.Runs) > 1 {
		c.CI95Bps = &[2]float64{m.Interval.Low, m.Interval.High}
	}
	middle := &m.Runs[0]
	for i := range m.Runs {
		r := &m.Runs[i]
		c.Runs = append(c.Runs, r.GoodputBps)
		c.Unsettled = c.Unsettled && !r.Settled
		if math.Abs(math.Log(r.GoodputBps/m.Interval.Mid)) < math.Abs(math.Log(middle.GoodputBps/m.Interval.Mid)) {
			middle = r
		}
	}
	c.Retransmitted = middle.Retransmitted
	if middle.Send != nil {
		c.SendBuffer = newBuffer(*middle.Send)
	}
	if middle.Receive != nil {
		c.ReceiveBuffer = newBuffer(*middle.Receive)
	}
	return c
}

// mark finds the best measured cell of a direction, and the smallest as good.
func mark(s *record.Sweep, d transfer.Direction) {
	var best, enough *record.SweepCell
	for i := range s.Cells {
		if c := &s.Cells[i]; c.Direction == d && c.Measured() && (best == nil || *c.GoodputBps > *best.GoodputBps) {
			best = c
		}
	}
	if best == nil {
		return
	}
	for i := range s.Cells {
		c := &s.Cells[i]
		if c.Direction == d && c.Measured() && *c.GoodputBps >= search.Enough**best.GoodputBps &&
			(enough == nil || memory(c) < memory(enough)) {
			enough = c
		}
	}
	best.Best = true
	enough.Enough = true
	for i := range s.Paths {
		if p := &s.Paths[i]; p.Direction == d && best.Limiter != "" {
			f := remedy.Facts{GoodputBps: *best.GoodputBps, RTTS: p.RTTMin.Seconds(), Congestion: p.Congestion,
				MSSBytes: p.MSSBytes}
			p.Fix = text.FixSentences(remedy.Fixes(verdict.Verdict{Limiter: best.Limiter, Subtype: best.Subtype}, f))
		}
	}
}

// memory is what a cell's buffers ask for; automatic asks for most.
func memory(c *record.SweepCell) float64 {
	sum := 0.0
	for _, b := range []*int{c.SendBufferBytes, c.ReceiveBufferBytes} {
		if b == nil {
			return math.Inf(1)
		}
		sum += float64(*b)
	}
	return sum
}
