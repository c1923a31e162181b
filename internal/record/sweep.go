package record

import (
	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
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
	ElapsedS       float64     `json:"elapsed_s"` // of all runs
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

// SweepPath is the path of one direction by all runs. 0 is not known.
type SweepPath struct {
	Direction   transfer.Direction `json:"direction"`
	RTTMin      units.Duration     `json:"rtt_min_s,omitzero"`
	MSSBytes    int                `json:"mss_bytes,omitempty"`
	Congestion  string             `json:"congestion,omitempty"`   // of all runs; "" where they differ
	CapacityBps float64            `json:"capacity_bps,omitempty"` // payload: the best cell's goodput
	AtLeast     bool               `json:"at_least,omitempty"`     // a buffer limited even the best cell
	// BDPBytes is CapacityBps × RTTMin: where a window begins to fill the path.
	BDPBytes float64 `json:"bdp_bytes,omitempty"`
	// KneeSendBytes and KneeReceiveBytes are the requested sizes whose effective size is the BDP on these systems; 0 is
	// not known.
	KneeSendBytes    float64      `json:"knee_send_buffer_bytes,omitempty"`
	KneeReceiveBytes float64      `json:"knee_receive_buffer_bytes,omitempty"`
	Fix              []advice.Fix `json:"fix,omitempty"` // about what limits the best cell
}

// SweepSetup is one combination of a grid's values. Send and Write are the sender's, Receive is the receiver's; in
// bytes, 0 is automatic.
type SweepSetup struct {
	Direction  transfer.Direction `json:"direction"`
	Congestion string             `json:"congestion,omitempty"` // the sender's; "": its default
	Send       int                `json:"send_buffer_bytes,omitempty"`
	Receive    int                `json:"receive_buffer_bytes,omitempty"`
	Write      int                `json:"write_bytes,omitempty"`
}

// Automatic is the word for the size 0 of a sweep.
const Automatic = "automatic"

// SweepSize returns a size of a sweep in words.
func SweepSize(bytes int) string {
	if bytes == 0 {
		return Automatic
	}
	return units.Size(bytes).String()
}

// Buffers returns the setup in words, without its direction.
func (s SweepSetup) Buffers() string {
	text := "send buffer " + SweepSize(s.Send) + ", receive buffer " + SweepSize(s.Receive)
	if s.Write > 0 {
		text += ", writes of " + SweepSize(s.Write)
	}
	if s.Congestion != "" {
		text += ", " + s.Congestion
	}
	return text
}

// SweepCell is one cell: its setup as requested, and its results. A cell without goodput was not measured.
type SweepCell struct {
	SweepSetup
	// GoodputBps is the median of the runs, each without slow start.
	GoodputBps float64     `json:"goodput_bps,omitempty"`
	CI95Bps    *[2]float64 `json:"ci95_bps,omitempty"`
	Runs       []float64   `json:"runs_bps,omitempty"`
	Tight      bool        `json:"tight,omitempty"` // the interval is within the requested precision
	// Unsettled reports that no run reached a steady rate: the goodput includes slow start.
	Unsettled bool         `json:"unsettled,omitempty"`
	Limiter   verdict.Name `json:"limiter,omitempty"`
	Subtype   string       `json:"subtype,omitempty"`
	// Confidence is absent in documents of earlier versions.
	Confidence verdict.Confidence `json:"confidence,omitempty"`
	Predicted  bool               `json:"predicted"`      // true only in documents of earlier versions
	Best       bool               `json:"best,omitempty"` // of its direction
	// Enough marks the smallest buffers that reach 98 % of the best goodput.
	Enough        bool     `json:"enough,omitempty"`
	SendBuffer    *Buffer  `json:"send_buffer,omitempty"` // of the run closest to the median
	ReceiveBuffer *Buffer  `json:"receive_buffer,omitempty"`
	Retransmitted *int64   `json:"retransmitted_segments,omitempty"`
	Refused       string   `json:"refused,omitempty"` // why the setup is impossible
	Problems      []string `json:"problems,omitempty"`
}

// Clipped reports whether the systems granted less than the setup requests.
func (c *SweepCell) Clipped() bool {
	return c.SendBuffer != nil && c.SendBuffer.Clipped || c.ReceiveBuffer != nil && c.ReceiveBuffer.Clipped
}

// Measured reports whether the cell has a goodput of its own runs.
func (c *SweepCell) Measured() bool { return c.GoodputBps > 0 && !c.Predicted }
