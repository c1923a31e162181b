// Package transfer has the types that all instruments share: the request for a measured transfer (Spec), a far end
// that can take part in it (Peer), and the samples and counters of each end (Result, End, Stream, Sample).
//
// The near end is this host, the far end the peer. Rates are bits per second, sizes bytes. An unknown value is a nil
// pointer, an empty string or a field that Sample.Have does not name; it is never 0. The JSON here travels between two
// fullpipes (docs/protocol.md); package report makes the documents for users.
package transfer

import (
	"context"
	"fmt"
	"net/netip"
	"time"
)

// Direction of the payload: Up is near to far, Down far to near.
type Direction string

const (
	Up   Direction = "up"
	Down Direction = "down"
)

// Spec asks for one transfer over new connections. With only a Direction and a Time it uses the system's defaults at
// both ends, as an ordinary program does.
type Spec struct {
	Direction Direction `json:"direction"`
	Near      Socket    `json:"near"`
	Far       Socket    `json:"far"`
	// Streams is the number of parallel connections; 0 is 1.
	Streams int `json:"streams,omitempty"`
	// Time and Bytes end the transfer, whichever comes first; Bytes counts payload over
	// all streams. At least one is set.
	Time    time.Duration `json:"time_ns,omitempty"`
	Bytes   int64         `json:"bytes,omitempty"`
	Program Program       `json:"program"`
	// Requests makes the transfer a load of requests.
	Requests Requests `json:"requests,omitzero"`
	// Latency asks for probes before and during the transfer. They take up to a second more, or three round trips.
	Latency bool `json:"-"`
	// TestID names the test in both ends' records, a UUID; empty: none.
	TestID string `json:"-"`
}

// Socket has the options that one end sets before connect() or listen().
type Socket struct {
	// SendBuffer and ReceiveBuffer are the values for SO_SNDBUF and SO_RCVBUF; 0 leaves autotuning on.
	SendBuffer    int `json:"send_buffer,omitempty"`
	ReceiveBuffer int `json:"receive_buffer,omitempty"`
	// Clamp limits the window that this end advertises (TCP_WINDOW_CLAMP) and leaves autotuning on; 0: no limit.
	Clamp      int    `json:"clamp,omitempty"`
	Congestion string `json:"congestion,omitempty"`
	MSS        int    `json:"mss,omitempty"`
	NoDelay    bool   `json:"no_delay,omitempty"`
	// PacingBps is SO_MAX_PACING_RATE in bit/s; 0: no limit.
	PacingBps float64 `json:"pacing_bps,omitempty"`
	// TOS is the IP header's traffic class byte: the DSCP shifted left by 2.
	TOS int `json:"tos,omitempty"`
	// Force passes the system's ceilings with SO_SNDBUFFORCE and SO_RCVBUFFORCE where they clip a request and this
	// process may (CAP_NET_ADMIN in the first namespaces). It never leaves this host.
	Force bool `json:"-"`
}

// Program describes the sending and the receiving program. The zero value writes as much as the kernel takes and reads
// everything.
type Program struct {
	// WriteBytes is the size of one write; 0: the size that needs the least CPU time.
	WriteBytes int `json:"write_bytes,omitempty"`
	// WriteBps and ReadBps limit the rate of the program itself; 0: no limit.
	WriteBps float64 `json:"write_bps,omitempty"`
	ReadBps  float64 `json:"read_bps,omitempty"`
	// RequestResponse makes each WriteBytes a request, written in two pieces. The receiver sends one byte back, and
	// then the next request follows.
	RequestResponse bool `json:"exchange,omitempty"`
	// ByReference lets the sender hand payload to the kernel without copying it, where its system can. Nothing else
	// changes. It is for senders that no write size, send buffer or rate is asked of.
	ByReference bool `json:"by_reference,omitempty"`
	// CopyReceived makes the receiver copy what it reads, as programs do that use it.
	CopyReceived bool `json:"copy_received,omitempty"`
}

// DefaultPort is the port of fullpipe servers. It is iperf3's.
const DefaultPort = 5201

// Peer is a far end that can be measured with. Its methods may be called from one
// goroutine at a time; Close may be called at any time and ends a running test.
type Peer interface {
	// Check returns *Unsupported if this peer cannot carry out the Test, with FieldUDP or FieldLegs for a kind of test
	// that it never can. It does no I/O, so that a search can leave out candidates.
	Check(Test) error
	// Run carries out one Test on new connections and calls each (if not nil) with the intervals as they end; calls for
	// two directions may overlap. It returns an Outcome for each leg; with an error it may return none.
	Run(ctx context.Context, t Test, each func(Interval)) ([]Outcome, error)
	Close() error
}

// Unsupported reports a field of a Spec that a peer does not support.
type Unsupported struct {
	Field  string // as in the Spec: "Far.Congestion"; or FieldUDP, FieldLegs
	Reason string
}

func (u *Unsupported) Error() string { return fmt.Sprintf("%s cannot be had: %s", u.Field, u.Reason) }

// Interval is the payload of all streams in one part of a running transfer.
type Interval struct {
	Start time.Duration `json:"start_ns"` // since the transfer's first byte
	End   time.Duration `json:"end_ns"`
	Bytes int64         `json:"bytes"` // payload received
	// Direction is that of the leg.
	Direction Direction `json:"-"`
	// Sender has the sender's counters at about that time; nil: not known.
	Sender *Sending `json:"-"`
	// Flows are those of a UDP transfer, in their order; nil: not known.
	Flows []FlowInterval `json:"-"`
	// Samples are the latest of this end's TCP streams, in their order; nil: not known.
	Samples []Sample `json:"-"`
}

// FlowInterval counts one UDP flow's datagrams. A receiver's Packets include the lost ones.
type FlowInterval struct {
	Bytes, Packets, Lost int64
	Jitter               time.Duration // of a receiver, at the interval's end
}

// Result is the result of one transfer. An end that cannot be observed (a stock iperf3, a web server) is nil.
type Result struct {
	Spec     Spec      `json:"spec"`
	Started  time.Time `json:"started"`
	Near     *End      `json:"near,omitempty"`
	Far      *End      `json:"far,omitempty"`
	Complete bool      `json:"complete"`
	// FarCPU is the CPU time that a far end without samples reports.
	FarCPU  *CPU     `json:"far_cpu,omitempty"`
	Latency *Latency `json:"latency,omitempty"` // nil: not asked for, or not supported
	// ClockDrift is the least difference of the clocks' rates, as a ratio: positive if the far end's clock is faster
	// than this host's, 0 if none was found.
	ClockDrift float64 `json:"clock_drift,omitempty"`
	// ProbedMTU is the largest packet that got through where larger ones vanish; 0: not probed, or none vanish.
	ProbedMTU int      `json:"probed_mtu,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
	// Load is the result of requests; nil of any other transfer.
	Load *Load `json:"load,omitempty"`
}

// Sender returns the sending end, or nil if it cannot be observed.
func (r *Result) Sender() *End {
	if r.Spec.Direction == Up {
		return r.Near
	}
	return r.Far
}

// Receiver returns the receiving end, or nil if it cannot be observed.
func (r *Result) Receiver() *End {
	if r.Spec.Direction == Up {
		return r.Far
	}
	return r.Near
}

// End is one host's view of a transfer.
type End struct {
	Kernel  string   `json:"kernel,omitempty"` // "Linux 6.18.44"
	Streams []Stream `json:"streams"`
	CPU     *CPU     `json:"cpu,omitempty"`
	// BufferRule names the buffering rule of another system that the sender emulated ("afd:8192").
	BufferRule string `json:"buffer_rule,omitempty"`
	// MemoryPressure is nil if there was none or the system does not report it.
	MemoryPressure *MemoryPressure `json:"memory_pressure,omitempty"`
	// ConcurrentTests is nil if this end ran no other test at the same time, or does not report it.
	ConcurrentTests *ConcurrentTests `json:"beside,omitempty"`
	// ClockStep is the largest step of this host's wall clock against the monotonic clock during the transfer. It is
	// positive if the clock was set forward, and 0 for steps below MinClockStep.
	ClockStep time.Duration `json:"clock_step_ns,omitempty"`
	// Losses are nil if this end's host does not watch its drops.
	Losses *Losses `json:"losses,omitempty"`
	// DropCounters are the counters of dropped packets of an end that cannot watch its drops.
	DropCounters []DropCounter `json:"drop_counters,omitempty"`
	// DropsNotPermitted reports that this host would watch its drops for a user with more privileges.
	DropsNotPermitted bool `json:"-"`
	// Moved is the payload in bytes with which this end occupied the path, for budgets: a sender's with retransmissions,
	// a receiver's with what it did not read. Streams count what was delivered. Only this host knows its own.
	Moved int64 `json:"-"`
	// Responses is the far end's part of a load of requests.
	Responses *Responses `json:"responses,omitempty"`
}

// MinClockStep is the least step that is reported: a system reads its two clocks one after the other.
const MinClockStep = time.Millisecond

// ConcurrentTests are the other tests that one end ran during a transfer: their number, and the time in which at least
// one of them ran.
type ConcurrentTests struct {
	Tests int64         `json:"tests"`
	Time  time.Duration `json:"time_ns"`
}

// MemoryPressure counts how often the kernel's TCP entered memory pressure (net.ipv4.tcp_mem) during the transfer, and
// for how long, caused by any connection. Time includes only periods that ended during the transfer, so it may be 0
// while Times is not.
type MemoryPressure struct {
	Times int64         `json:"times"`
	Time  time.Duration `json:"time_ns"`
}

// CPU is the CPU time of this end during the transfer.
type CPU struct {
	Wall    time.Duration `json:"wall_ns"`
	Process time.Duration `json:"process_ns"` // user and system time of this process
	// BusiestThread is the largest share (0 to 1) of wall time that one data thread ran.
	BusiestThread float64 `json:"busiest_thread"`
	// RunqueueWait is the largest share of wall time in which one data thread was runnable while others had its core,
	// without the wake-up time of cores. It is also 0 if the system does not report it.
	RunqueueWait float64 `json:"starved_thread,omitempty"`
	// Host is the share (0 to 1) of the whole machine that was busy, if known.
	Host *float64 `json:"host,omitempty"`
	// Copies says whether this end's program copied the payload to or from the kernel, if known.
	Copies *bool `json:"copies,omitempty"`
}

// Stream is one connection as one end observed it.
type Stream struct {
	Local      netip.AddrPort `json:"local"`
	Remote     netip.AddrPort `json:"remote"`
	Congestion string         `json:"congestion,omitempty"`
	Handshake  *Handshake     `json:"handshake,omitempty"`
	SendBuffer Buffer         `json:"send_buffer"`
	// ReceiveBuffer's Effective is the largest window that this end advertised.
	ReceiveBuffer Buffer `json:"receive_buffer"`
	// Bytes is payload: at the receiver the bytes that the program read, at the sender the acknowledged bytes.
	Bytes int64 `json:"bytes"`
	// First and Last are the times of the first and the last payload byte on this end's transfer clock. For a sender
	// that ran until its time was over, Last is that time.
	First time.Duration `json:"first_ns"`
	Last  time.Duration `json:"last_ns"`
	// FirstReadBytes is the size of a receiver's first read. Those bytes had arrived by First, so a rate from First to
	// Last excludes them.
	FirstReadBytes int64    `json:"opening,omitempty"`
	Samples        []Sample `json:"samples,omitempty"`
}

// Handshake has the options that the connection negotiated, as this end sees them.
type Handshake struct {
	MSS int `json:"mss"` // payload bytes of a full segment this end sends, options deducted
	// shift of the windows this end receives (the peer's offer); -1: not negotiated
	SendScale    int  `json:"send_scale"`
	ReceiveScale int  `json:"receive_scale"` // shift of the windows this end advertises; -1: not negotiated
	SACK         bool `json:"sack"`
	Timestamps   bool `json:"timestamps"`
	ECN          bool `json:"ecn"`
	PathMTU      int  `json:"path_mtu,omitempty"`
}

// DefaultMSS is the payload of a full segment with timestamps on Ethernet, for connections whose MSS is not known.
const DefaultMSS = 1448

// SegmentSize returns the payload of a full segment, in bytes. A nil Handshake is not known.
func (h *Handshake) SegmentSize() int64 {
	if h == nil || h.MSS <= 0 {
		return DefaultMSS
	}
	return int64(h.MSS)
}

// Buffer is a socket buffer's size in bytes: requested, granted and effective.
type Buffer struct {
	Requested int `json:"requested,omitempty"` // 0: automatic
	Granted   int `json:"granted,omitempty"`   // getsockopt's value at the end; doubled on Linux
	Effective int `json:"effective,omitempty"` // the largest window, or the most bytes in flight
	// Clipped reports that the system granted less than was requested.
	Clipped bool `json:"clipped,omitempty"`
	// Forced reports that a privilege (SO_*BUFFORCE) was needed to exceed the system's maximum. For an ordinary
	// program the size would be clipped.
	Forced bool `json:"forced,omitempty"`
	// AutomaticMax is the maximum of autotuning, in the unit of Granted; 0: not known, or not automatic.
	AutomaticMax int `json:"automatic_max,omitempty"`
	// Constant reports that the system does not autotune this buffer, though nothing was requested.
	Constant bool `json:"constant,omitempty"`
}

// Automatic reports whether the system sizes this buffer.
func (b Buffer) Automatic() bool { return b.Requested == 0 }
