// Package transfer holds the words that all instruments share: what a measured TCP
// transfer is asked to be (Spec), who can carry it out (Peer) and what was seen of it
// at each end (Result, End, Stream, Sample).
//
// The near end is this host, the far end the peer. Rates are bits per second, sizes
// bytes. An unknown value is a nil pointer, an empty string or a field that
// Sample.Have does not name; it is never 0. The JSON here is what travels between two
// fullpipes (docs/protocol.md); what users read is report's.
package transfer

import (
	"context"
	"fmt"
	"net/netip"
	"time"
)

// Direction says who sends: Up is near to far, Down far to near.
type Direction string

const (
	Up   Direction = "up"
	Down Direction = "down"
)

// Spec asks for one transfer over fresh connections. Its zero value with a Direction
// and a Time is what a program gets today: the system's defaults at both ends.
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
	// Latency asks for round trips of small packets before and beside the transfer,
	// which takes up to a second more, or three round trips.
	Latency bool `json:"-"`
	// TestID names the test in both ends' records, a UUID; empty: it has none.
	TestID string `json:"-"`
}

// Socket is what one end's sockets are given before connect() or listen().
type Socket struct {
	// SendBuffer and ReceiveBuffer are what SO_SNDBUF and SO_RCVBUF ask for; 0 leaves
	// the system's automatic sizing on.
	SendBuffer    int `json:"send_buffer,omitempty"`
	ReceiveBuffer int `json:"receive_buffer,omitempty"`
	// Clamp bounds the window this end advertises (TCP_WINDOW_CLAMP) without switching
	// automatic sizing off; 0 is no bound.
	Clamp      int    `json:"clamp,omitempty"`
	Congestion string `json:"congestion,omitempty"`
	MSS        int    `json:"mss,omitempty"`
	NoDelay    bool   `json:"no_delay,omitempty"`
	// PacingBps is SO_MAX_PACING_RATE counted in bit/s; 0 is no bound.
	PacingBps float64 `json:"pacing_bps,omitempty"`
	// TOS is the IP header's traffic class byte: the DSCP shifted left by 2.
	TOS int `json:"tos,omitempty"`
	// Force passes the system's ceilings with SO_SNDBUFFORCE and SO_RCVBUFFORCE where they clip a request and this
	// process may (CAP_NET_ADMIN in the first namespaces). It never leaves this host.
	Force bool `json:"-"`
}

// Program says how the sending and the receiving program behave. The zero value writes
// as much as the kernel takes and reads all there is.
type Program struct {
	// WriteBytes is the size of one write; 0 chooses the size that costs least CPU.
	WriteBytes int `json:"write_bytes,omitempty"`
	// WriteBps and ReadBps hold the program itself to a rate; 0 is no bound.
	WriteBps float64 `json:"write_bps,omitempty"`
	ReadBps  float64 `json:"read_bps,omitempty"`
	// RequestResponse makes each WriteBytes a request, written in two pieces, which the
	// receiver answers with one byte before the next is sent.
	RequestResponse bool `json:"exchange,omitempty"`
}

// Peer is a far end that can be measured with. Its methods may be called from one
// goroutine at a time; Close may be called at any time and ends a running test.
type Peer interface {
	// Check says whether this peer can carry out the Test at all: nil or *Unsupported,
	// with FieldUDP or FieldLegs for what it never can. It does no I/O, so a search can
	// leave out what cannot be had.
	Check(Test) error
	// Run carries out one Test on fresh connections and calls each (when not nil) with
	// the intervals as they come; calls for two directions may overlap. There is an
	// Outcome for each leg, or with an error there may be none.
	Run(ctx context.Context, t Test, each func(Interval)) ([]Outcome, error)
	Close() error
}

// Unsupported is what Check answers for a field of a Spec that this peer cannot honour.
type Unsupported struct {
	Field string // as in the Spec: "Far.Congestion"; or FieldUDP, FieldLegs
	Why   string
}

func (u *Unsupported) Error() string { return fmt.Sprintf("%s cannot be had: %s", u.Field, u.Why) }

// Interval is what arrived in one span of a running transfer, all streams together.
type Interval struct {
	Start time.Duration `json:"start_ns"` // since the transfer's first byte
	End   time.Duration `json:"end_ns"`
	Bytes int64         `json:"bytes"` // payload received
	// Direction is the leg's.
	Direction Direction `json:"-"`
	// Sender is how the sender stood about then; nil: not known.
	Sender *Sending `json:"-"`
	// Flows are UDP's, one by one in their order; nil: not told apart.
	Flows []FlowInterval `json:"-"`
	// Samples are the last ones of this end's TCP streams, in their order; nil: not told.
	Samples []Sample `json:"-"`
}

// FlowInterval is what one UDP flow moved. A receiver's Packets are those that it knows to
// have been sent.
type FlowInterval struct {
	Bytes, Packets, Lost int64
	Jitter               time.Duration // at the interval's end, a receiver's
}

// Result is what was seen of one transfer. An end that cannot be seen (a stock iperf3,
// a web server) is nil.
type Result struct {
	Spec     Spec      `json:"spec"`
	Started  time.Time `json:"started"`
	Near     *End      `json:"near,omitempty"`
	Far      *End      `json:"far,omitempty"`
	Complete bool      `json:"complete"`
	// FarCPU is what a far end that cannot be seen says that it spent.
	FarCPU  *CPU     `json:"far_cpu,omitempty"`
	Latency *Latency `json:"latency,omitempty"` // nil: not asked for, or not to be had
	// ClockDrift is by what share of the time the far end's clock surely runs faster (negative:
	// slower) than this host's; 0 where none was shown.
	ClockDrift float64 `json:"clock_drift,omitempty"`
	// ProbedMTU is the largest packet that probes got through where larger ones vanish; 0: not probed, or none vanish.
	ProbedMTU int      `json:"probed_mtu,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
}

// Sender is the sending end, or nil when it cannot be seen.
func (r *Result) Sender() *End {
	if r.Spec.Direction == Up {
		return r.Near
	}
	return r.Far
}

// Receiver is the receiving end, or nil when it cannot be seen.
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
	// BufferRule names the buffering rule of the sender's own that was in force
	// ("afd:8192"), where the kernel's was not.
	BufferRule string `json:"buffer_rule,omitempty"`
	// MemoryPressure is nil where there was none or the system does not tell.
	MemoryPressure *MemoryPressure `json:"memory_pressure,omitempty"`
	// Beside is nil where this end carried out no other test meanwhile, or does not tell.
	Beside *Beside `json:"beside,omitempty"`
	// ClockStep is by how much this host's clock was ahead (negative: behind) at the most during
	// the transfer, against the one that only counts, because somebody set it; 0 also where that
	// is less than ClockStepLeast.
	ClockStep time.Duration `json:"clock_step_ns,omitempty"`
}

// ClockStepLeast is from where on a step is told: a system reads its two clocks one after
// the other.
const ClockStepLeast = time.Millisecond

// Beside are the other tests that one end carried out during a transfer: how many, and for
// how long at least one of them ran.
type Beside struct {
	Tests int64         `json:"tests"`
	Time  time.Duration `json:"time_ns"`
}

// MemoryPressure is how often the kernel's TCP ran short of memory (net.ipv4.tcp_mem) during
// the transfer and for how long, whichever connections took it. Time counts what ended
// before the transfer did: it may be 0 beside Times.
type MemoryPressure struct {
	Times int64         `json:"times"`
	Time  time.Duration `json:"time_ns"`
}

// CPU is what this end spent during the transfer.
type CPU struct {
	Wall    time.Duration `json:"wall_ns"`
	Process time.Duration `json:"process_ns"` // user and system time of this process
	// BusiestThread is the largest share (0 to 1) of wall time that one data thread ran.
	BusiestThread float64 `json:"busiest_thread"`
	// ThreadRunDelay is the largest share of wall time that one data thread was ready to
	// run and others had its core: cores that had to wake up first do not count. 0 also where
	// the system does not tell.
	ThreadRunDelay float64 `json:"starved_thread,omitempty"`
	// Host is the share (0 to 1) of the whole machine that was busy, if known.
	Host *float64 `json:"host,omitempty"`
}

// Stream is one connection as one end saw it.
type Stream struct {
	Local      netip.AddrPort `json:"local"`
	Remote     netip.AddrPort `json:"remote"`
	Congestion string         `json:"congestion,omitempty"`
	Handshake  *Handshake     `json:"handshake,omitempty"`
	SendBuffer Buffer         `json:"send_buffer"`
	// ReceiveBuffer's Effective is the largest window that this end advertised.
	ReceiveBuffer Buffer `json:"receive_buffer"`
	// Bytes is payload: at the receiver what the program took from the socket, at the
	// sender what the far end acknowledged.
	Bytes int64 `json:"bytes"`
	// First and Last are the times of the first and the last payload byte on this
	// end's transfer clock. A sender whose time was up wrote, or waited to, until Last.
	First time.Duration `json:"first_ns"`
	Last  time.Duration `json:"last_ns"`
	// Opening is how many bytes a receiver's first read took: they had arrived when the
	// time from First to Last began, so a rate over that time leaves them out.
	Opening int64    `json:"opening,omitempty"`
	Samples []Sample `json:"samples,omitempty"`
}

// Handshake is what the connection settled on, as this end sees it.
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

// Buffer keeps three values apart, in bytes.
type Buffer struct {
	Requested int `json:"requested,omitempty"` // 0: automatic
	Granted   int `json:"granted,omitempty"`   // what getsockopt says at the end; doubled on Linux
	Effective int `json:"effective,omitempty"` // what the window or the bytes in flight really reached
	// Clipped says that the system gave less than was asked.
	Clipped bool `json:"clipped,omitempty"`
	// Forced says that it took privilege (SO_*BUFFORCE) to get more than the system's
	// ceiling; an ordinary program would have been clipped.
	Forced bool `json:"forced,omitempty"`
	// AutomaticMax is how far the system's sizing goes, in the unit of Granted; 0: not known, or not automatic.
	AutomaticMax int `json:"automatic_max,omitempty"`
}

// Automatic says that the system sizes this buffer.
func (b Buffer) Automatic() bool { return b.Requested == 0 }
