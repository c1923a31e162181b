package record

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/watch/legs"
)

// Watch has the limiters of this host's connections in a span of time: one period of `watch`, the whole time of
// `watch --for`, or the target of `why`.
type Watch struct {
	Header
	Target  string  `json:"target,omitempty"` // of `why`
	AtS     float64 `json:"at_s"`             // when the span ended, since the watch began
	LengthS float64 `json:"length_s"`
	// Standing counts the open connections that are followed, Matching those of the span that match the filter, idle ones
	// included.
	Standing int         `json:"standing"`
	Matching int         `json:"matching"`
	Totals   WatchTotals `json:"totals"`
	// Limited sums the matching connections by limiter, the one of most bytes first.
	Limited []WatchLimited `json:"limited"`
	// Connections are the heaviest first; of `why`, the one that limits comes before them.
	Connections []WatchedConnection `json:"connections"`
	// Requests are those of all connections in the list.
	Requests *WatchedRequests `json:"requests,omitempty"`
	// LeftOut counts lighter connections that moved payload and are not listed.
	LeftOut int `json:"left_out,omitempty"`
	// LostEnds counts closed connections whose last counters the kernel dropped, because its queue was full.
	LostEnds    int64          `json:"lost_ends"`
	DumpS       float64        `json:"dump_s"`
	Unread      []verdict.Note `json:"unread,omitempty"` // parts of the host that were not seen
	Interrupted bool           `json:"interrupted,omitempty"`
	// Anonymized reports that addresses are replaced.
	Anonymized bool `json:"anonymized,omitempty"`
	// Criteria judge the direction that limits, of `why`.
	Criteria []Criterion `json:"criteria,omitempty"`
	// PathChanges were found in this span.
	PathChanges []PathShift `json:"path_changes,omitempty"`
}

// PathShift is a change of the path to a network, found by comparing windows of five minutes.
type PathShift struct {
	// Network is absent where Networks of Judged shifted at once: it is the host's own path.
	Network  string `json:"network,omitempty"`
	Networks int    `json:"networks"`
	Judged   int    `json:"judged"`
	// Metric is rtt, rate, loss, reordering, mtu or ecn.
	Metric string    `json:"metric"`
	Since  time.Time `json:"since"`
	// Back reports that an earlier change is over.
	Back          bool     `json:"back,omitempty"`
	BeforeRTTMinS *float64 `json:"before_rtt_min_s,omitempty"`
	AfterRTTMinS  *float64 `json:"after_rtt_min_s,omitempty"`
	BeforeBps     *float64 `json:"before_bps,omitempty"` // delivered where the program was not the limit
	AfterBps      *float64 `json:"after_bps,omitempty"`
	BeforeRatio   *float64 `json:"before_ratio,omitempty"` // of segments sent
	AfterRatio    *float64 `json:"after_ratio,omitempty"`
	BeforeBytes   *float64 `json:"before_bytes,omitempty"`
	AfterBytes    *float64 `json:"after_bytes,omitempty"`
	BeforeECN     string   `json:"before_ecn,omitempty"` // how many new connections have it: none, some or all
	AfterECN      string   `json:"after_ecn,omitempty"`
}

// WatchTotals count since the watch began, over every connection that is followed.
type WatchTotals struct {
	SentBytes          int64 `json:"sent_bytes"`
	ReceivedBytes      int64 `json:"received_bytes"`
	RetransmittedBytes int64 `json:"retransmitted_bytes"`
	Opened             int64 `json:"opened"`
	Closed             int64 `json:"closed"`
	Unfinished         int64 `json:"unfinished"` // ended, and the kernel's final counters were not received
}

// WatchLimited sums the connections of one limiter in one direction.
type WatchLimited struct {
	Limiter     verdict.Name       `json:"limiter"`
	Direction   transfer.Direction `json:"direction"`
	Bytes       int64              `json:"bytes"` // of the connections with this main limiter
	LimitedS    float64            `json:"limited_s"`
	Connections int                `json:"connections"`
}

// WatchedConnection is one connection in the span.
type WatchedConnection struct {
	Local   string `json:"local"`
	Remote  string `json:"remote"`
	PID     int    `json:"pid,omitempty"`
	Program string `json:"program,omitempty"`
	Script  string `json:"script,omitempty"` // that the program interprets
	// ParentPID and ParentProgram are the ancestor that was asked for, where the process itself was not.
	ParentPID     int    `json:"parent_pid,omitempty"`
	ParentProgram string `json:"parent_program,omitempty"`
	Unit          string `json:"unit,omitempty"`
	Container     string `json:"container,omitempty"`
	Congestion    string `json:"congestion,omitempty"`
	// SendBufferBytes and ReceiveBufferBytes are granted ones.
	SendBufferBytes    int64   `json:"send_buffer_bytes,omitempty"`
	ReceiveBufferBytes int64   `json:"receive_buffer_bytes,omitempty"`
	FollowedS          float64 `json:"followed_s,omitempty"` // since it was first seen
	Ended              bool    `json:"ended,omitempty"`
	// Directions are the heavier first; of `why`, the one that limits.
	Directions []WatchedDirection `json:"directions"`
	Requests   *WatchedRequests   `json:"requests,omitempty"`
}

// WatchedRequests are the requests of watched connections.
type WatchedRequests struct {
	TurnsPerS float64 `json:"turns_per_s"` // where they are sampled, at most
	// Role is client or server: this host's; absent where it differs between connections, or is not known.
	Role string `json:"role,omitempty"`
	// Requests are known where eBPF showed the segments. Of a connection they have no slowest turns and no distribution.
	Requests
	// StalledHere and StalledByPeer count the stalls of each end that a retransmission ended.
	StalledHere   int64 `json:"stalled_here,omitempty"`
	StalledByPeer int64 `json:"stalled_by_peer,omitempty"`
	// QueueFilledBy is the connection of this host that fills the queue in which the requests wait.
	QueueFilledBy *QueueFiller `json:"queue_filled_by,omitempty"`
	// FollowedOneOf is how many connections of this host there are for each one that was followed; 1: all were.
	FollowedOneOf int64 `json:"followed_one_of,omitempty"`
	// Missed counts segments and connections of this host that were not followed.
	Missed int64 `json:"missed,omitempty"`
	// Sampled has the states of the connections at samples, where their segments were not seen.
	Sampled *SampledRequests `json:"sampled,omitempty"`
}

// QueueFiller is a connection to the same host that fills a queue on the path.
type QueueFiller struct {
	PID       int                `json:"pid,omitempty"`
	Program   string             `json:"program,omitempty"`
	Unit      string             `json:"unit,omitempty"`
	Container string             `json:"container,omitempty"`
	Local     string             `json:"local"`
	Remote    string             `json:"remote"`
	Direction transfer.Direction `json:"direction"`
	QueueS    float64            `json:"queue_s"` // of each round trip of the requests
}

// SampledRequests add up the time between samples by the state of the connection at the later one. The rest of the time
// is unknown. Tail-loss probes, the peer's retransmissions and waits between two samples are not seen.
type SampledRequests struct {
	SpanS         float64 `json:"span_s"`        // of all connections together
	TimerS        float64 `json:"timer_s"`       // after a retransmission by this end's timer
	ZeroWindowS   float64 `json:"zero_window_s"` // the peer's receive window was closed
	InFlightS     float64 `json:"in_flight_s"`   // data was not acknowledged
	PeerS         float64 `json:"peer_s"`        // all was acknowledged, and this end sent last
	ProgramS      float64 `json:"program_s"`     // all was acknowledged, and the peer sent last
	Timers        int64   `json:"timers"`        // periods of timer_s
	LongestTimerS float64 `json:"longest_timer_s"`
}

// known reports whether turns or states were seen.
func (r *WatchedRequests) known() bool { return r != nil && (r.Turns != nil || r.Sampled != nil) }

// RequestsLead reports whether requests explain more than the limiters of the connection.
func (c *WatchedConnection) RequestsLead() bool {
	if !c.Requests.known() || len(c.Directions) == 0 {
		return false
	}
	if c.Requests.Turns != nil {
		return c.Requests.Leads()
	}
	switch c.Directions[0].Limiter {
	case verdict.Application, verdict.ReceiverApplication, verdict.Unknown:
		return true
	}
	return false
}

// RequestsLead reports whether the requests are the answer for a target: all of them lead, and the heaviest connection
// is no bulk transfer.
func (d *Watch) RequestsLead() bool {
	if !d.Requests.known() || len(d.Connections) == 0 {
		return false
	}
	c := &d.Connections[0]
	if d.Requests.Turns == nil || c.Requests == nil || c.Requests.Turns == nil {
		return c.RequestsLead()
	}
	t := c.Requests.Turns
	return d.Requests.Leads() && t.Bulk == 0 && !t.Interleaved
}

// WatchedDirection is one direction of it.
type WatchedDirection struct {
	Direction          transfer.Direction `json:"direction"`
	Bytes              int64              `json:"bytes"`
	GoodputBps         float64            `json:"goodput_bps"`
	RetransmittedBytes int64              `json:"retransmitted_bytes,omitempty"`
	// LostAt has the places where packets were dropped, as far as hosts were watched.
	LostAt []LostAt       `json:"lost_at,omitempty"`
	RTT    units.Duration `json:"rtt_s,omitzero"`
	RTTMin units.Duration `json:"rtt_min_s,omitzero"`
	// InFlightBytes are the last bytes in flight, OfferedBytes the receive window then: the peer's if this end sends, else
	// our own.
	InFlightBytes int64 `json:"in_flight_bytes,omitempty"`
	OfferedBytes  int64 `json:"offered_bytes,omitempty"`
	// Sampled says that the verdict rests on samples; else on the kernel's cumulative
	// clocks alone.
	Sampled bool `json:"sampled"`
	verdict.Verdict
	Fix []advice.Fix `json:"fix,omitempty"` // remedies in order, or the next test
	// Waits has what the program waited for, where its program limits the direction, the longest
	// first; the shares are of the time that was sampled.
	Waits []Wait `json:"waits,omitempty"`
	// Program is a known program whose window agrees with the bytes in flight.
	Program *ProgramWindow `json:"program,omitempty"`
	// Leg is the direction of another connection that moves the same data through the program.
	Leg *WatchedLeg `json:"leg,omitempty"`
}

// WatchedLeg names a direction of another connection.
type WatchedLeg struct {
	Local     string             `json:"local"`
	Remote    string             `json:"remote"`
	Direction transfer.Direction `json:"direction"`
	// Others is the number of further connections that move a part of the same data.
	Others int `json:"others,omitempty"`
	// Role is "waits" where this direction waits for the named one, "limits" where that one waits for
	// this one.
	Role legs.Role `json:"role,omitempty"`
}
