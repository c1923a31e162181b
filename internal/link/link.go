// Package link simulates the path between two hosts, one lane for each direction. It has no clock: the caller passes
// the time to every call, in nanoseconds from an origin of its choice. Equal calls with equal seeds have equal results,
// to the nanosecond and the packet.
//
// A packet passes, in this order: the middlebox that strips options (Strip), the smallest MTU, the VPN's gateways
// (Path.VPN) or the limit of its flow (FlowRate), the policer, the queue with its AQM, and the line with its rate. Then
// loss, duplication, delay with jitter, reordering and aggregation apply.
//
// Rates are at the IP layer. The queue does not include the packet in transmission. Behind gateways the policer, the
// queue and the line process the larger packets of the tunnel.
package link

import "time"

// Options names TCP options that a middlebox takes out of handshakes.
type Options uint8

const (
	WindowScale Options = 1 << iota
	SACK
	Timestamps
)

// Config is one direction of a path. Its zero value has no delay, no limit and no loss.
type Config struct {
	Rate     int64 // bit/s at the IP layer; 0 is unlimited
	Overhead int   // bytes on the line per packet besides its IP bytes
	Delay    time.Duration
	// Jitter is the spread of the delay: Delay − Jitter/2 to Delay + Jitter/2. It changes at most half as fast as
	// time, so that no packet overtakes another.
	Jitter time.Duration
	// Loss is the share of packets lost. LossBurst above 1 is their mean number in a row (Gilbert-Elliott, all lost in
	// the bad state).
	Loss      float64
	LossBurst float64
	// Reorder is the share of packets with an extra delay of HoldBack.
	Reorder   float64
	HoldBack  time.Duration
	Duplicate float64 // share of packets that arrive twice
	// QueueBytes and QueuePackets limit the droptail queue. If both are 0, a lane with a Rate has no queue.
	QueueBytes   int64
	QueuePackets int64 // 0: only bytes count
	// MarkBytes is the queue size at which AQM starts: it marks ECN-capable packets and drops others (RFC 3168 section
	// 5). 0 is no AQM.
	MarkBytes int64
	// MTU is the largest IP packet in bytes; 0 is no limit. Larger packets are dropped, never fragmented. The caller
	// sends ICMP unless Silent.
	MTU    int
	Silent bool
	// PoliceRate (bit/s) and PoliceBurst (bytes) are a token-bucket policer before the queue; 0 is none.
	PoliceRate  int64
	PoliceBurst int64
	// FlowRate (bit/s) limits each flow (Batch.Flow); 0 is no limit. Each flow has its own queue of the lane's queue
	// size.
	FlowRate int64
	// Aggregate is the interval at which packets are delivered together.
	Aggregate time.Duration
	Strip     Options
	// Tunnelled sends each packet through IPsec (ESPBytes), which lowers the usable MTU. Batches with OutsideTunnel
	// are exempt.
	Tunnelled bool
	// Single returns each segment in a Run of its own.
	Single bool
	Seed   uint64
}

// Batch is one IP packet of a host, or a super-packet (GSO). A lane treats each segment as a packet.
type Batch struct {
	ID            int32 // the caller's, returned with each Run
	Segments      int   // 1 or more
	Bytes         int   // IP bytes of each segment but the last
	Last          int   // IP bytes of the last segment, or of the only one
	OutsideTunnel bool  // bypasses the VPN's gateways
	ECT           bool  // ECN-capable transport
	// Flow identifies a connection for Config.FlowRate; 0 is not limited.
	Flow uint64
}

// Run is a range of consecutive segments of one Batch that leave the lane together.
type Run struct {
	ID    int32
	First int
	Count int
	Lost  bool  // not to be delivered, only freed
	Due   int64 // arrival of the first segment
	CE    bool  // to be delivered with congestion experienced
}

// Counters counts packets (segments) and IP bytes since the lane was made.
type Counters struct {
	Offered, OfferedBytes     int64
	Carried, CarriedBytes     int64 // on the line, later losses included; in a tunnel with its overhead
	Delivered, DeliveredBytes int64 // duplicates included
	DroppedQueue              int64 // flow queues included
	DroppedPolicer            int64
	DroppedUnmarked           int64 // not ECN-capable, dropped instead of marked
	Marked                    int64
	DroppedGateway            int64
	DroppedMTU                int64
	Lost                      int64
	Duplicated                int64
	Reordered                 int64
	QueuePeakBytes            int64
}
