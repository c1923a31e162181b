package record

import (
	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Direction is one direction of a measured transfer, as in the JSON contract.
type Direction struct {
	Direction            transfer.Direction `json:"direction"`
	GoodputBps           *float64           `json:"goodput_bps,omitempty"`
	SteadyGoodputBps     *float64           `json:"steady_goodput_bps,omitempty"`
	Startup              *Startup           `json:"startup,omitempty"`
	DurationS            *float64           `json:"duration_s,omitempty"`
	Bytes                *int64             `json:"bytes,omitempty"`
	RetransmittedSegment *int64             `json:"retransmitted_segments,omitempty"`
	RTTMin               units.Duration     `json:"rtt_min_s,omitzero"`
	RTTMean              units.Duration     `json:"rtt_mean_s,omitzero"`
	// RTTLoaded is the median RTT of the connection itself after its startup.
	RTTLoaded units.Duration `json:"rtt_loaded_s,omitzero"`
	Latency   *Latency       `json:"latency_under_load,omitempty"`
	// LostAt has the places where packets were dropped, as far as hosts were watched.
	LostAt      []LostAt `json:"lost_at,omitempty"`
	MSSBytes    int      `json:"mss_bytes,omitempty"`
	WindowScale *int     `json:"window_scale,omitempty"`
	// SACK and Timestamps are the negotiated options, PathMTUBytes is by the sender's kernel.
	SACK         *bool `json:"sack,omitempty"`
	Timestamps   *bool `json:"timestamps,omitempty"`
	PathMTUBytes int   `json:"path_mtu_bytes,omitempty"`
	// ProbedMTUBytes is the largest packet that passed where larger ones vanish.
	ProbedMTUBytes int `json:"probed_mtu_bytes,omitempty"`
	verdict.Verdict
	Fix []advice.Fix `json:"fix,omitempty"` // remedies in order, or the next test
	// Waits has what the program of exec waited for, where it limits the direction, the longest first.
	Waits       []Wait     `json:"waits,omitempty"`
	Windows     Windows    `json:"windows"`
	Streams     []Stream   `json:"streams"`
	Intervals   []Interval `json:"intervals,omitempty"`
	CPU         *CPU       `json:"cpu,omitempty"`
	Interrupted bool       `json:"interrupted,omitempty"`
	Warnings    []string   `json:"warnings,omitempty"`

	Curves DirectionCurves `json:"-"`
}

// Startup is the transfer's beginning, before its rate settled.
type Startup struct {
	DurationS float64 `json:"duration_s"`
	Bytes     int64   `json:"bytes"`
}

// Windows are the sender's send buffer and the receiver's receive buffer of the first stream. An end that cannot be
// observed is absent.
type Windows struct {
	SendBuffer    *Buffer `json:"send_buffer,omitempty"`
	ReceiveBuffer *Buffer `json:"receive_buffer,omitempty"`
}

// Buffer is a socket buffer. A size of 0 is not known, or was not requested. EffectiveBytes may exceed a granted send
// buffer: Linux extends a segment that waits without checking the size (tcp_sendmsg_locked).
type Buffer struct {
	RequestedBytes int  `json:"requested_bytes,omitempty"`
	GrantedBytes   int  `json:"granted_bytes,omitempty"`
	EffectiveBytes int  `json:"effective_bytes,omitempty"`
	Automatic      bool `json:"automatic"`
	Clipped        bool `json:"clipped,omitempty"`
	// Forced reports that the size exceeds the system's maximum for unprivileged programs, set with a privilege.
	Forced bool `json:"forced,omitempty"`
	// AutomaticMaxBytes is the maximum of autotuning, where the buffer is automatic.
	AutomaticMaxBytes int `json:"automatic_max_bytes,omitempty"`
}

// NewBuffer returns the document form of a transfer's buffer, nil for an end that cannot be observed.
func NewBuffer(b *transfer.Buffer) *Buffer {
	if b == nil {
		return nil
	}
	return &Buffer{RequestedBytes: b.Requested, GrantedBytes: b.Granted, EffectiveBytes: b.Effective,
		Automatic: b.Automatic(), Clipped: b.Clipped, Forced: b.Forced, AutomaticMaxBytes: b.AutomaticMax}
}

// Stream is one connection's part.
type Stream struct {
	Local         string  `json:"local"`
	Remote        string  `json:"remote"`
	Bytes         int64   `json:"bytes"`
	GoodputBps    float64 `json:"goodput_bps"`
	Congestion    string  `json:"congestion,omitempty"`
	Retransmitted *int64  `json:"retransmitted_segments,omitempty"`
}

// Interval is the data that arrived in one time span.
type Interval struct {
	StartS     float64 `json:"start_s"`
	EndS       float64 `json:"end_s"`
	Bytes      int64   `json:"bytes"`
	GoodputBps float64 `json:"goodput_bps"`
	// RTT and Retransmitted are the sender's kernel's at the end of the interval, or the last before it.
	RTT           units.Duration `json:"rtt_s,omitzero"`
	Retransmitted *int64         `json:"retransmitted_segments,omitempty"`
}

// CPU is the CPU time of each end's program as shares of wall time: all threads together (1 is one core), the busiest
// data thread, the run-queue delay of a data thread, and the load of the whole machine. Copies says whether the end's
// program copied the payload to or from the kernel.
type CPU struct {
	NearProcess *float64 `json:"near_process_ratio,omitempty"`
	NearRatio   *float64 `json:"near_busiest_thread_ratio,omitempty"`
	NearStarved *float64 `json:"near_starved_ratio,omitempty"`
	NearHost    *float64 `json:"near_host_ratio,omitempty"`
	NearCopies  *bool    `json:"near_copies,omitempty"`
	FarProcess  *float64 `json:"far_process_ratio,omitempty"`
	FarRatio    *float64 `json:"far_busiest_thread_ratio,omitempty"`
	FarStarved  *float64 `json:"far_starved_ratio,omitempty"`
	FarHost     *float64 `json:"far_host_ratio,omitempty"`
	FarCopies   *bool    `json:"far_copies,omitempty"`
}
