package record

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/sweep"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Sweep is the object that `sweep --json` prints.
type Sweep struct {
	Header
	Peer           string      `json:"peer"`
	Near           *Host       `json:"near,omitempty"`
	Far            *Host       `json:"far,omitempty"`
	Axes           SweepAxes   `json:"axes"`
	Paths          []SweepPath `json:"paths"`
	Cells          []SweepCell `json:"cells"`
	RunS           float64     `json:"run_s"` // length of one run
	PrecisionRatio float64     `json:"precision_ratio,omitempty"`
	BudgetS        float64     `json:"budget_s,omitempty"`
	Seed           uint64      `json:"seed"`
	ElapsedS       float64     `json:"elapsed_s"` // of all runs, earlier processes' too
	BytesSent      int64       `json:"bytes_sent"`
	Complete       bool        `json:"complete"` // every cell was measured as precisely as was asked
	Interrupted    bool        `json:"interrupted,omitempty"`
	Error          *Failure    `json:"error,omitempty"`
}

// SweepAxes are the values of the grid. Where a list's automatic is true, the system's
// own sizing is one value more.
type SweepAxes struct {
	SendBuffers      []int                `json:"send_buffer_bytes"`
	SendAutomatic    bool                 `json:"send_buffer_automatic"`
	ReceiveBuffers   []int                `json:"receive_buffer_bytes"`
	ReceiveAutomatic bool                 `json:"receive_buffer_automatic"`
	Writes           []int                `json:"write_bytes"`
	WriteAutomatic   bool                 `json:"write_automatic"` // as large as costs least
	Directions       []transfer.Direction `json:"directions"`
	Congestion       []string             `json:"congestion,omitempty"` // absent: the senders' default
}

// SweepPath is what the runs of one direction told of the path.
type SweepPath struct {
	Direction   transfer.Direction `json:"direction"`
	RTTMinS     *float64           `json:"rtt_min_s,omitempty"`
	MSSBytes    *int               `json:"mss_bytes,omitempty"`
	Congestion  string             `json:"congestion,omitempty"`   // the senders', where all used the same
	CapacityBps *float64           `json:"capacity_bps,omitempty"` // payload
	AtLeast     bool               `json:"at_least,omitempty"`     // even the best cell was held back by a buffer
	BDPBytes    *float64           `json:"bdp_bytes,omitempty"`
	// The requested buffers that come to the BDP on these systems; absent where no cell
	// told.
	KneeSendBytes    *float64 `json:"knee_send_buffer_bytes,omitempty"`
	KneeReceiveBytes *float64 `json:"knee_receive_buffer_bytes,omitempty"`
	Fix              []Fix    `json:"fix,omitempty"` // about what limits the best cell
}

// SweepCell is one cell. The sizes are what was asked for; an absent one was automatic.
// A cell without goodput was not measured.
type SweepCell struct {
	Direction          transfer.Direction `json:"direction"`
	Congestion         string             `json:"congestion,omitempty"`
	SendBufferBytes    *int               `json:"send_buffer_bytes,omitempty"`
	ReceiveBufferBytes *int               `json:"receive_buffer_bytes,omitempty"`
	WriteBytes         *int               `json:"write_bytes,omitempty"`
	// GoodputBps is the middle of the runs, each without slow start; of a predicted cell
	// the model's.
	GoodputBps *float64    `json:"goodput_bps,omitempty"`
	CI95Bps    *[2]float64 `json:"ci95_bps,omitempty"`
	Runs       []float64   `json:"runs_bps,omitempty"`
	Tight      bool        `json:"tight,omitempty"` // the interval is as narrow as was asked
	// Unsettled says that no run reached a steady rate: slow start is in the goodput.
	Unsettled bool         `json:"unsettled,omitempty"`
	Limiter   verdict.Name `json:"limiter,omitempty"`
	Subtype   string       `json:"subtype,omitempty"`
	Predicted bool         `json:"predicted"`
	Best      bool         `json:"best,omitempty"` // of its direction
	// Enough marks the smallest buffers that reach 98 % of the best.
	Enough        bool     `json:"enough,omitempty"`
	SendBuffer    *Buffer  `json:"send_buffer,omitempty"` // of the run next to the middle
	ReceiveBuffer *Buffer  `json:"receive_buffer,omitempty"`
	Retransmitted *int64   `json:"retransmitted_segments,omitempty"`
	Refused       string   `json:"refused,omitempty"` // why it cannot be had
	Problems      []string `json:"problems,omitempty"`
}

// NewSweep describes a sweep.
func NewSweep(h Header, r *sweep.Result) *Sweep {
	a := r.Identity.Axes
	doc := &Sweep{Header: h, Peer: r.Identity.Peer, Near: sweepHost(r.Ends.Near), Far: sweepHost(r.Ends.Far),
		Paths: []SweepPath{}, RunS: r.Identity.Time.Seconds(),
		PrecisionRatio: r.Rules.Precision, BudgetS: r.Rules.Budget.Seconds(), Seed: r.Identity.Seed,
		ElapsedS: r.Elapsed.Seconds(), BytesSent: r.Bytes, Complete: r.Complete}
	doc.Axes.SendBuffers, doc.Axes.SendAutomatic = fixed(a.Send)
	doc.Axes.ReceiveBuffers, doc.Axes.ReceiveAutomatic = fixed(a.Receive)
	doc.Axes.Writes, doc.Axes.WriteAutomatic = fixed(a.Write)
	doc.Axes.Directions = a.Directions
	if len(a.Congestion) > 1 || a.Congestion[0] != "" {
		doc.Axes.Congestion = a.Congestion
	}
	for _, p := range r.Paths {
		path := SweepPath{Direction: p.Direction, MSSBytes: known(p.MSS), Congestion: p.Congestion,
			CapacityBps: rate(p.CapacityBps), AtLeast: p.AtLeast}
		if p.RTT > 0 {
			path.RTTMinS, path.BDPBytes = seconds(p.RTT), rate(p.BDPBytes)
			path.KneeSendBytes, path.KneeReceiveBytes = positive(p.KneeSend), positive(p.KneeReceive)
		}
		doc.Paths = append(doc.Paths, path)
	}
	for i := range r.Cells {
		doc.Cells = append(doc.Cells, newSweepCell(&r.Cells[i]))
	}
	for _, d := range a.Directions {
		doc.mark(d)
	}
	return doc
}

func positive(v float64) *float64 {
	if v <= 0 {
		return nil
	}
	return rate(v)
}

func sweepHost(h *sweep.Host) *Host {
	if h == nil {
		return nil
	}
	return &Host{Address: h.Address, Kernel: h.Kernel}
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

func newSweepCell(m *sweep.Measured) SweepCell {
	c := SweepCell{Direction: m.Direction, Congestion: m.Congestion, SendBufferBytes: known(m.Send),
		ReceiveBufferBytes: known(m.Receive),
		WriteBytes:         known(m.Write), Tight: m.Tight, Limiter: m.Limiter, Subtype: m.Subtype, Refused: m.Refused,
		Problems: m.Problems}
	if m.Predicted != nil {
		c.Predicted, c.GoodputBps, c.CI95Bps = true, rate(m.Predicted.Mid), &[2]float64{m.Predicted.Low, m.Predicted.High}
		return c
	}
	if len(m.Runs) == 0 {
		return c
	}
	c.GoodputBps, c.Unsettled = rate(m.Interval.Mid), true
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

// Clipped says that the cell got less than was asked.
func (c *SweepCell) Clipped() bool {
	return c.SendBuffer != nil && c.SendBuffer.Clipped || c.ReceiveBuffer != nil && c.ReceiveBuffer.Clipped
}

// mark finds the best measured cell of a direction, and the smallest as good.
func (s *Sweep) mark(d transfer.Direction) {
	var best, enough *SweepCell
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
			(enough == nil || c.memory() < enough.memory()) {
			enough = c
		}
	}
	best.Best, enough.Enough = true, true
	for i := range s.Paths {
		if p := &s.Paths[i]; p.Direction == d && best.Limiter != "" {
			f := FixFacts{GoodputBps: *best.GoodputBps, RTTS: orZero(p.RTTMinS), Congestion: p.Congestion}
			if p.MSSBytes != nil {
				f.MSSBytes = *p.MSSBytes
			}
			p.Fix = NewFixes(verdict.Verdict{Limiter: best.Limiter, Subtype: best.Subtype}, f)
		}
	}
}

func (c *SweepCell) Measured() bool { return c.GoodputBps != nil && !c.Predicted }

// memory is what a cell's buffers ask for; automatic asks for most.
func (c *SweepCell) memory() float64 {
	sum := 0.0
	for _, b := range []*int{c.SendBufferBytes, c.ReceiveBufferBytes} {
		if b == nil {
			return math.Inf(1)
		}
		sum += float64(*b)
	}
	return sum
}
