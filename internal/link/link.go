// Package link models the path between two hosts, one lane for each direction, on its
// own clock: every call is told the time, in nanoseconds from an origin of the caller's
// choice. The same calls with the same seed do the same thing, to the nanosecond and to
// the packet.
//
// A packet offered to a lane meets, in this order: the middlebox that strips options
// (Strip), the smallest MTU, the VPN's gateways (Path.VPN) or the bound of its connection
// (FlowRate), the policer, the queue (which may mark) and the line with its rate, then what
// befalls it on the way: loss, duplication, delay with its jitter, reordering, and release
// in bursts (aggregation).
//
// Rates are counted at the IP layer. A queue holds what waits; the packet whose bits are
// on the line is no longer in it. Behind gateways policer, queue and line see the packets
// of the tunnel, which are larger.
package link

import "time"

// Options names TCP options that a middlebox takes out of handshakes.
type Options uint8

const (
	WindowScale Options = 1 << iota
	SACK
	Timestamps
)

// Config is one direction of a path. Its zero value is a perfect one: no delay, no
// limit, no loss.
type Config struct {
	Rate     int64 // bit/s at the IP layer; 0 is unlimited
	Overhead int   // bytes that each packet takes on the line besides its IP bytes
	Delay    time.Duration
	// Jitter is the spread of the delay: it wanders between Delay − Jitter/2 and
	// Delay + Jitter/2, slowly enough (at most half as fast as time) that no packet
	// overtakes another.
	Jitter time.Duration
	// Loss is the share of packets lost; LossBurst, when above 1, their mean number in
	// a row (Gilbert-Elliott with a bad state that loses everything).
	Loss      float64
	LossBurst float64
	// Reorder is the share of packets held back for HoldBack longer than the others.
	Reorder   float64
	HoldBack  time.Duration
	Duplicate float64 // share of packets that arrive twice
	// QueueBytes and QueuePackets bound what waits for the line, droptail; 0 of both is
	// a queue of nothing, which only a lane with a Rate has to mind.
	QueueBytes   int64
	QueuePackets int64 // 0: only bytes count
	// MarkBytes is the queue from which on its manager signals congestion: packets of an
	// ECN-capable transport are marked, others dropped (RFC 3168 section 5). 0: it has none.
	MarkBytes int64
	// MTU is the largest packet (IP bytes) that the line takes; 0 lets all pass. Larger
	// ones are dropped, never fragmented. Whether the sender is told (ICMP) is up to the
	// caller, by Silent.
	MTU    int
	Silent bool
	// PoliceRate (bit/s) and PoliceBurst (bytes) are a token bucket that drops what
	// exceeds it, before the queue; 0 is none.
	PoliceRate  int64
	PoliceBurst int64
	// FlowRate (bit/s) is what each flow (Batch.Flow) gets at most; 0 is no bound. What
	// exceeds it waits as long as the queue's size allows, of which each flow has its own.
	FlowRate int64
	// Aggregate holds packets and hands them over together, once each such time.
	Aggregate time.Duration
	Strip     Options
	// Tunnelled has each packet travel inside one of IPsec's (ESPBytes), which leaves
	// less of the MTU, unless it is Beside the tunnel.
	Tunnelled bool
	// Single has each segment leave in a Run of its own.
	Single bool
	Seed   uint64
}

// Batch is a packet as it comes from a host: one IP packet, or what the host left for
// its device to cut into segments. A lane treats each segment as a packet of its own.
type Batch struct {
	ID       int32 // the caller's name for it, handed back with each Run
	Segments int   // 1 or more
	Bytes    int   // IP bytes of each segment but the last
	Last     int   // IP bytes of the last segment, or of the only one
	Beside   bool  // goes past the VPN's gateways, as if they were not there
	ECT      bool  // an ECN-capable transport's
	// Flow tells connections apart where a lane bounds them (Config.FlowRate); 0 is none,
	// which nothing bounds.
	Flow uint64
}

// Run is a stretch of consecutive segments of one Batch that leave the lane together.
type Run struct {
	ID    int32
	First int
	Count int
	Lost  bool  // not to be delivered: only to be forgotten
	Due   int64 // when the first of them arrived
	CE    bool  // to be delivered with congestion experienced
}

// Counters count packets (segments) and IP bytes since the lane was made.
type Counters struct {
	Offered, OfferedBytes     int64
	Carried, CarriedBytes     int64 // by the line, what is lost afterwards included; in a tunnel, the tunnel's
	Delivered, DeliveredBytes int64 // duplicates included
	DroppedQueue              int64 // and a flow's own
	DroppedPolicer            int64
	DroppedUnmarked           int64 // where a packet of an ECN-capable transport would have been marked
	Marked                    int64
	DroppedGateway            int64
	DroppedMTU                int64
	Lost                      int64
	Duplicated                int64
	HeldBack                  int64
	QueuePeakBytes            int64
}
