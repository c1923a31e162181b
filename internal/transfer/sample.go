package transfer

import "time"

// Fields names groups of a Sample's fields, because not every system and version reports all of them. The values travel
// between ends and are stored, so they must not change (docs/protocol.md).
type Fields uint32

const (
	HaveRTT         Fields = 1 << 0  // RTT, RTTVar
	HaveMinRTT      Fields = 1 << 1  // MinRTT
	HaveCwnd        Fields = 1 << 2  // Cwnd, Ssthresh
	HaveSendWnd     Fields = 1 << 3  // SendWnd
	HaveInFlight    Fields = 1 << 4  // InFlight
	HaveNotSent     Fields = 1 << 5  // NotSent
	HaveLimits      Fields = 1 << 6  // Busy, RwndLimited, SndbufLimited
	HaveRate        Fields = 1 << 7  // DeliveryBps, AppLimited, PacingBps
	HaveRetrans     Fields = 1 << 8  // Retransmitted, RetransmittedBytes, Lost
	HaveRecovery    Fields = 1 << 9  // Recovering, Timeouts
	HaveAcked       Fields = 1 << 10 // Acked, Sent
	HaveReceived    Fields = 1 << 11 // Received
	HaveReceiveWnd  Fields = 1 << 12 // ReceiveWnd
	HaveQueue       Fields = 1 << 13 // Queued
	HaveProgram     Fields = 1 << 14 // Program, Blocked, Paused, Awaited, and RunqueueWait where the system reports it
	HaveDeliveredCE Fields = 1 << 15 // DeliveredCE
	HaveRcvOOOPack  Fields = 1 << 16 // RcvOOOPack
	HaveDSACKDups   Fields = 1 << 17 // DSACKDups, ReordSeen
	HaveSegmentsIn  Fields = 1 << 18 // SegmentsIn
)

// Sample has the counters of one connection at one time. Counters start with the connection; sizes are bytes. Only
// the fields that Have names are valid.
type Sample struct {
	At   time.Duration `json:"at_ns"` // on this end's transfer clock
	Have Fields        `json:"have"`

	RTT    time.Duration `json:"rtt_ns,omitempty"` // smoothed
	RTTVar time.Duration `json:"rttvar_ns,omitempty"`
	MinRTT time.Duration `json:"min_rtt_ns,omitempty"`

	Cwnd     int64 `json:"cwnd,omitempty"`
	Ssthresh int64 `json:"ssthresh,omitempty"` // 0: not set yet
	SendWnd  int64 `json:"send_wnd,omitempty"` // the receive window that the peer advertises
	InFlight int64 `json:"in_flight,omitempty"`
	NotSent  int64 `json:"not_sent,omitempty"`

	// The kernel's three exclusive clocks (tcp_info: busy_time, rwnd_limited,
	// sndbuf_limited); Busy includes the other two.
	Busy          time.Duration `json:"busy_ns,omitempty"`
	RwndLimited   time.Duration `json:"rwnd_limited_ns,omitempty"`
	SndbufLimited time.Duration `json:"sndbuf_limited_ns,omitempty"`

	DeliveryBps float64 `json:"delivery_bps,omitempty"`
	AppLimited  bool    `json:"app_limited,omitempty"` // DeliveryBps may be below the path's rate
	PacingBps   float64 `json:"pacing_bps,omitempty"`

	Retransmitted      int64 `json:"retransmitted,omitempty"` // segments
	RetransmittedBytes int64 `json:"retransmitted_bytes,omitempty"`
	Lost               int64 `json:"lost,omitempty"` // segments marked lost and not yet retransmitted
	Recovering         bool  `json:"recovering,omitempty"`
	Timeouts           int64 `json:"timeouts,omitempty"` // consecutive, now

	// DeliveredCE counts the segments with a CE mark (RFC 3168) by the receiver's echoes: tcpi_delivered_ce. It is 0
	// without ECN.
	DeliveredCE int64 `json:"marked,omitempty"`
	// RcvOOOPack counts the segments that arrived out of order, among them those after each lost one:
	// tcpi_rcv_ooopack.
	RcvOOOPack int64 `json:"out_of_order,omitempty"`
	// DSACKDups counts the segments that the receiver reported as duplicates (RFC 2883): tcpi_dsack_dups. ReordSeen
	// counts the segments that were acknowledged after a later one without a retransmission: tcpi_reord_seen.
	DSACKDups int64 `json:"needless,omitempty"`
	ReordSeen int64 `json:"overtaken,omitempty"`
	// SegmentsIn counts the segments that arrived, pure acknowledgements included: tcpi_segs_in.
	SegmentsIn int64 `json:"segments_in,omitempty"`

	Acked    int64 `json:"acked,omitempty"`
	Sent     int64 `json:"sent,omitempty"` // payload, retransmissions included
	Received int64 `json:"received,omitempty"`

	ReceiveWnd int64 `json:"receive_wnd,omitempty"` // the window that this end advertises now
	// Queued is the unacknowledged and unsent bytes at a sender (SIOCOUTQ), the unread bytes at a receiver (SIOCINQ).
	Queued int64 `json:"queued,omitempty"`

	// The measuring program: bytes written or read, time in the kernel waiting for space or data, time in which it
	// chose not to write or read, and time waiting for the other program's response (Program.RequestResponse).
	Program int64         `json:"program,omitempty"`
	Blocked time.Duration `json:"blocked_ns,omitempty"`
	Paused  time.Duration `json:"paused_ns,omitempty"`
	Awaited time.Duration `json:"awaited_ns,omitempty"`
	// RunqueueWait is the time in which the program's thread was runnable without a core. It may be part of Blocked. A
	// writer's excludes the wake-up time of its core.
	RunqueueWait time.Duration `json:"starved_ns,omitempty"`
}

// Arrived returns the payload that had arrived, in order or not: the bytes sent once, less those in flight and those
// that are lost, in segments of the given size. The acknowledged bytes alone do not advance during a hole and jump when
// it is repaired.
func (s *Sample) Arrived(mss int64) int64 {
	if s.Have&(HaveRetrans|HaveInFlight) != HaveRetrans|HaveInFlight || s.Sent <= 0 {
		return s.Acked
	}
	return max(s.Acked, s.Sent-s.RetransmittedBytes-s.InFlight-s.Lost*mss)
}
