package record

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/trust"
)

// Diagnose is the object that `diagnose --json` prints: the limiter of each direction of each captured connection, the
// connection with the most lost time first.
type Diagnose struct {
	Header
	Files     []string `json:"files"`
	Packets   int64    `json:"packets"`
	Segments  int64    `json:"segments"`
	Unmatched int64    `json:"unmatched_segments,omitempty"` // TCP segments that --host and --port left out
	// Trust says whether losses and times in the capture can be relied on; absent in documents of earlier versions.
	Trust *trust.Trust `json:"trust,omitempty"`
	// Seen and Followed count connections where Connections lacks some for want of memory: those in the
	// capture, and those with the most bytes, which were followed. Of these the ones with the most bytes are in
	// Connections.
	Seen     int64 `json:"connections_seen,omitempty"`
	Followed int64 `json:"connections_followed,omitempty"`
	// Tiny reports that no direction carried more than one initial window.
	Tiny        bool                 `json:"tiny,omitempty"`
	Connections []CapturedConnection `json:"connections"`
	// Servers has the requests of each server with more than one connection, the most stalled
	// first.
	Servers     []CapturedServer    `json:"servers,omitempty"`
	Criteria    []RequestsCriterion `json:"criteria,omitempty"`
	Warnings    []verdict.Note      `json:"warnings,omitempty"`
	Interrupted bool                `json:"interrupted,omitempty"`
}

// CapturedConnection is one connection of a capture.
type CapturedConnection struct {
	Client     string              `json:"client"`
	Server     string              `json:"server"`
	StartedAt  time.Time           `json:"started_at"`
	DurationS  float64             `json:"duration_s"`
	Handshake  *CapturedHandshake  `json:"handshake,omitempty"`
	Vantage    string              `json:"vantage"` // client, server, middle or unknown
	Directions []CapturedDirection `json:"directions"`
	Requests
	Notes []verdict.Note `json:"notes,omitempty"`
}

// CapturedHandshake is the options of the two SYNs; those of a SYN that was not captured are absent.
type CapturedHandshake struct {
	// MSS in bytes and WindowScale are the offers by end; an option that was not offered is absent.
	MSS         map[string]int `json:"mss"`
	WindowScale map[string]int `json:"window_scale"`
	SACK        *bool          `json:"sack,omitempty"` // both offered; absent: not known
	Timestamps  *bool          `json:"timestamps,omitempty"`
}

// CapturedDirection is the data of one end.
type CapturedDirection struct {
	From                 string   `json:"from"`
	To                   string   `json:"to"`
	Bytes                int64    `json:"bytes"`
	DurationS            float64  `json:"duration_s"`
	GoodputBps           *float64 `json:"goodput_bps,omitempty"`
	RTTMinS              *float64 `json:"rtt_min_s,omitempty"`
	RTTMaxS              *float64 `json:"rtt_max_s,omitempty"`
	Segments             int64    `json:"segments"`
	RetransmittedSegment int64    `json:"retransmitted_segments"`
	SpuriousSegments     int64    `json:"spurious_retransmissions,omitempty"` // that the receiver did not need
	OutOfOrderSegments   int64    `json:"out_of_order_segments,omitempty"`
	Timeouts             int64    `json:"timeouts,omitempty"`
	UncapturedBytes      int64    `json:"uncaptured_bytes,omitempty"` // acknowledged, but not in the capture
	MSSBytes             *int     `json:"mss_bytes,omitempty"`        // of the captured segments
	WindowMaxBytes       *int64   `json:"window_max_bytes,omitempty"`
	WindowScale          *int     `json:"window_scale,omitempty"` // of the windows that limit this direction
	OutstandingMaxBytes  int64    `json:"outstanding_max_bytes"`
	LostS                float64  `json:"lost_s"`
	// SYNWaitS is the time in which SYNs were lost, before duration_s and part of lost_s.
	SYNWaitS float64 `json:"syn_wait_s,omitempty"`
	TapAt    string  `json:"tap_at"` // sender, receiver, middle or unknown
	// Trust says whether losses and times of this direction can be relied on.
	Trust *trust.Trust `json:"trust,omitempty"`
	verdict.Verdict
	Fix        []advice.Fix        `json:"fix,omitempty"` // remedies in order, or the next test
	Prediction *CapturedPrediction `json:"prediction,omitempty"`
	Settings   []CapturedSettings  `json:"settings,omitempty"`
	// Program is the known program with the window of the verdict; absent: no known program.
	Program *ProgramWindow `json:"program,omitempty"`

	// Between is the comparison of two captures of the connection; absent with one capture.
	Between *CapturedBetween `json:"between,omitempty"`

	// ShownBytes is the part of Bytes that packets or acknowledgements prove, retransmissions included; 0: not known.
	ShownBytes int64          `json:"-"`
	Curves     CapturedCurves `json:"-"`
}

// CapturedBetween locates the losses and the queueing of one direction with two captures: before the first tap that the
// data passes, between the two, and after the second. Times are round trips unless stated otherwise.
type CapturedBetween struct {
	LostBeforeBytes  int64   `json:"lost_before_bytes"`
	LostBetweenBytes int64   `json:"lost_between_bytes"`
	LostAfterBytes   int64   `json:"lost_after_bytes"`
	RTTMinS          float64 `json:"rtt_min_s"`    // between the taps
	QueueS           float64 `json:"queue_s"`      // the mean above RTTMinS
	QueuePastS       float64 `json:"queue_past_s"` // the same past the second tap
	JudgedAt         string  `json:"judged_at"`    // the capture that the verdict follows from: near or far
	// CommonFromS and CommonS are the start and the length of the time span that is in both captures, since the
	// connection's first segment in the near one. Losses are counted in it. Absent: both captures cover the same time.
	CommonFromS float64 `json:"common_from_s,omitempty"`
	CommonS     float64 `json:"common_s,omitempty"`
	// Ways are absent where too few segments are in both captures.
	Ways *CapturedWays `json:"ways,omitempty"`
}

// CapturedWays is the one-way delay between two taps in each direction, from the segments in both captures, matched by
// sequence numbers and timestamps.
type CapturedWays struct {
	Matched int `json:"matched_segments"`
	// The queueing delay of data and of acknowledgements: the delay from tap to tap above its minimum. Mean and 95th
	// percentile.
	DataQueueS     float64 `json:"data_queue_s"`
	DataQueueMostS float64 `json:"data_queue_most_s"`
	AckQueueS      float64 `json:"ack_queue_s"`
	AckQueueMostS  float64 `json:"ack_queue_most_s"`
	RTTMinS        float64 `json:"rtt_min_s"`
	// ClockOffsetS is the far capture's clock minus the near one's at the start of the connection. It assumes equal
	// minimum delays in both directions; the error is at most half of rtt_min_s. ClockDrift is the drift since then as a
	// share of the elapsed time.
	ClockOffsetS float64 `json:"clock_offset_s"`
	ClockDrift   float64 `json:"clock_drift_ratio"`
}

// CapturedPrediction is the predicted effect of a fix.
type CapturedPrediction struct {
	Limiter verdict.Name `json:"limiter,omitempty"` // the limiter that the fix removes
	Fix     string       `json:"fix"`
	LowBps  float64      `json:"low_bps"`
	HighBps float64      `json:"high_bps,omitempty"`
	AtLeast bool         `json:"at_least"`
}

// CapturedCurves are the data of a direction's graphs: positions and bytes over nanoseconds since its first packet,
// rates in bit/s, RTTs in nanoseconds.
type CapturedCurves struct {
	Data, Acks, Edge       []flow.Point // positions of the payload, as the tap saw them
	Outstanding, Window    []flow.Point // as the sender saw them
	Rate, RTT              []flow.Point
	Retransmissions, SACKs []flow.Mark
	Bands                  []Band
}

func (r *Diagnose) curves() (all []curve) {
	for i := range r.Connections {
		for j := range r.Connections[i].Directions {
			c := &r.Connections[i].Directions[j].Curves
			of := place("/connections/%d/directions/%d", i, j)
			all = append(all, curve{of: of, name: "data", points: &c.Data}, curve{of: of, name: "acks", points: &c.Acks},
				curve{of: of, name: "edge", points: &c.Edge}, curve{of: of, name: "outstanding", points: &c.Outstanding},
				curve{of: of, name: "window", points: &c.Window}, curve{of: of, name: "rate", points: &c.Rate},
				curve{of: of, name: "rtt", points: &c.RTT}, curve{of: of, name: "retransmissions", marks: &c.Retransmissions},
				curve{of: of, name: "sacks", marks: &c.SACKs}, curve{of: of, name: "bands", bands: &c.Bands})
		}
	}
	return all
}

// Worst returns the direction with the most lost time.
func (c *CapturedConnection) Worst() *CapturedDirection {
	w := &c.Directions[0]
	for i := range c.Directions {
		if d := &c.Directions[i]; d.LostS > w.LostS || d.LostS == w.LostS && d.Bytes > w.Bytes {
			w = d
		}
	}
	return w
}
