package transfer

import "time"

// Fields names groups of a Sample's fields, because what a kernel tells depends on the
// system and its version. The values travel between ends and stand in records: they stay
// what they are (docs/protocol.md).
type Fields uint32

const (
	HaveRTT        Fields = 1 << 0  // RTT, RTTVar
	HaveMinRTT     Fields = 1 << 1  // MinRTT
	HaveCwnd       Fields = 1 << 2  // Cwnd, Ssthresh
	HaveSendWnd    Fields = 1 << 3  // SendWnd
	HaveInFlight   Fields = 1 << 4  // InFlight
	HaveNotSent    Fields = 1 << 5  // NotSent
	HaveLimits     Fields = 1 << 6  // Busy, ReceiveLimited, SendLimited
	HaveRate       Fields = 1 << 7  // DeliveryBps, AppLimited, PacingBps
	HaveRetrans    Fields = 1 << 8  // Retransmitted, RetransmittedBytes, Lost
	HaveRecovery   Fields = 1 << 9  // Recovering, Timeouts
	HaveAcked      Fields = 1 << 10 // Acked, Sent
	HaveReceived   Fields = 1 << 11 // Received
	HaveReceiveWnd Fields = 1 << 12 // ReceiveWnd
	HaveQueue      Fields = 1 << 13 // Queued
	HaveProgram    Fields = 1 << 14 // Program, Blocked, Paused, Awaited, and RunDelay where the system tells
	HaveMarked     Fields = 1 << 15 // Marked
	HaveOutOfOrder Fields = 1 << 16 // OutOfOrder
	HaveNeedless   Fields = 1 << 17 // Needless, Overtaken
	HaveSegmentsIn Fields = 1 << 18 // SegmentsIn
)

// Sample is one reading of one connection. Counters count from the connection's start;
// sizes are bytes. Which fields mean anything is said by Have.
type Sample struct {
	At   time.Duration `json:"at_ns"` // on this end's transfer clock
	Have Fields        `json:"have"`

	RTT    time.Duration `json:"rtt_ns,omitempty"` // smoothed
	RTTVar time.Duration `json:"rttvar_ns,omitempty"`
	MinRTT time.Duration `json:"min_rtt_ns,omitempty"`

	Cwnd     int64 `json:"cwnd,omitempty"`
	Ssthresh int64 `json:"ssthresh,omitempty"` // 0: not set yet
	SendWnd  int64 `json:"send_wnd,omitempty"` // the window the peer advertises
	InFlight int64 `json:"in_flight,omitempty"`
	NotSent  int64 `json:"not_sent,omitempty"`

	// The kernel's three exclusive clocks (tcp_info: busy_time, rwnd_limited,
	// sndbuf_limited); Busy includes the other two.
	Busy           time.Duration `json:"busy_ns,omitempty"`
	ReceiveLimited time.Duration `json:"rwnd_limited_ns,omitempty"`
	SendLimited    time.Duration `json:"sndbuf_limited_ns,omitempty"`

	DeliveryBps float64 `json:"delivery_bps,omitempty"`
	AppLimited  bool    `json:"app_limited,omitempty"` // DeliveryBps says nothing of the path
	PacingBps   float64 `json:"pacing_bps,omitempty"`

	Retransmitted      int64 `json:"retransmitted,omitempty"` // segments, all so far
	RetransmittedBytes int64 `json:"retransmitted_bytes,omitempty"`
	Lost               int64 `json:"lost,omitempty"` // segments held lost now
	Recovering         bool  `json:"recovering,omitempty"`
	Timeouts           int64 `json:"timeouts,omitempty"` // consecutive, now

	// Marked is how many segments the path marked with congestion experienced (RFC 3168), by what
	// the receiver echoed: tcp_info's delivered_ce. 0 where the ends did not agree to ECN.
	Marked int64 `json:"marked,omitempty"`
	// OutOfOrder is how many segments came before one that was sent earlier: tcp_info's
	// rcv_ooopack. Those after each lost one are among them.
	OutOfOrder int64 `json:"out_of_order,omitempty"`
	// Needless is how many segments the receiver said that it got twice (RFC 2883; tcp_info's
	// dsack_dups), Overtaken how often one that was not sent again was acknowledged after a later
	// one (tcp_info's reord_seen).
	Needless  int64 `json:"needless,omitempty"`
	Overtaken int64 `json:"overtaken,omitempty"`
	// SegmentsIn is how many segments came, bare acknowledgements included: tcp_info's segs_in.
	SegmentsIn int64 `json:"segments_in,omitempty"`

	Acked    int64 `json:"acked,omitempty"`
	Sent     int64 `json:"sent,omitempty"` // payload, retransmissions included
	Received int64 `json:"received,omitempty"`

	ReceiveWnd int64 `json:"receive_wnd,omitempty"` // the window this end advertises now
	// Queued is what waits in this end's socket: unacknowledged and unsent bytes at a
	// sender (SIOCOUTQ), unread bytes at a receiver (SIOCINQ).
	Queued int64 `json:"queued,omitempty"`

	// What our own program did: bytes it wrote or read, the time it waited in the
	// kernel for space or data, the time it chose not to write or read, and the time it
	// waited for the other program's answer (Program.RequestResponse).
	Program int64         `json:"program,omitempty"`
	Blocked time.Duration `json:"blocked_ns,omitempty"`
	Paused  time.Duration `json:"paused_ns,omitempty"`
	Awaited time.Duration `json:"awaited_ns,omitempty"`
	// RunDelay is the time our program's thread was ready but had no core, which may be a
	// part of Blocked: what it waited for had come. A writer's is without what its core took
	// to wake up.
	RunDelay time.Duration `json:"starved_ns,omitempty"`
}
