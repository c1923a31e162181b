package transfer

import (
	"net/netip"
	"time"
)

// DatagramSpec asks for one UDP transfer.
type DatagramSpec struct {
	Direction Direction
	// Bps is the rate of payload over all streams, in bit/s; 0 is as fast as the sender can.
	Bps     float64
	Size    int // payload of one datagram, bytes; 0: the most that fits into 1500 bytes of IP
	Streams int // 0 is 1
	Time    time.Duration
	Buffer  int // SO_SNDBUF and SO_RCVBUF at both ends, bytes; 0: the systems' default
	TOS     int
	// Search lets the sender search the path's capacity by the receiver's feedback every 50
	// ms (RFC 9097), with Bps as its bound. It needs a fullpipe there and one stream.
	Search bool
	// DontFragment forbids fragments, where the sender's system can.
	DontFragment bool
}

// DatagramResult is the result of a UDP transfer. A nil pointer means that the receiver did not report the value.
type DatagramResult struct {
	Spec    DatagramSpec
	Started time.Time
	// Headers is the size of a datagram's IP and UDP headers, bytes.
	Headers    int
	Sent       int64 // datagrams
	Received   int64 // duplicates included
	Lost       int64
	Reordered  *int64
	Duplicates *int64
	Bytes      int64 // payload received
	Duration   time.Duration
	Jitter     time.Duration // RFC 1889; the mean over all streams
	// Variation is the delay above the least one: RFC 5481's packet delay variation.
	Variation *Variation
	Seconds   []DatagramSecond // of a Search: each full second
	Congested bool             // of a Search: the path limited the rate, not the sender
	CPU       *CPU             // of this end
	FarCPU    *CPU             // of the far end; nil: not reported
	// SocketDrops are the datagrams that the receiver's sockets dropped; nil: not known.
	SocketDrops  *int64
	DropCounters []DropCounter // of this end's host, those that moved
	Losses       *Losses       // of this end's host, without retransmissions; nil: not watched
	Flows        []Addresses   // of this end
	Complete     bool
	Warnings     []string
}

// Addresses are the two ends of a flow.
type Addresses struct{ Local, Remote netip.AddrPort }

// AddSocketDrops adds those of one stream; nil: not known.
func (r *DatagramResult) AddSocketDrops(n *int64) {
	if n == nil {
		return
	}
	if r.SocketDrops == nil {
		r.SocketDrops = new(int64)
	}
	*r.SocketDrops += *n
}

// Variation is the distribution of delays above the least.
type Variation struct {
	Median  time.Duration `json:"median"`
	P95     time.Duration `json:"p95"`
	P99     time.Duration `json:"p99"`
	Largest time.Duration `json:"largest"`
}

// DatagramSecond has a receiver's counters of about one second.
type DatagramSecond struct {
	Duration time.Duration
	Sent     int64 // datagrams, by their numbers
	Lost     int64
	Bytes    int64         // payload
	Delay    time.Duration // mean delay above the least
}

// LossRatio returns the lost datagrams as a share (0 to 1) of those sent.
func (r *DatagramResult) LossRatio() float64 {
	if r.Sent <= 0 {
		return 0
	}
	return float64(r.Lost) / float64(r.Sent)
}

// Bps returns the rate of payload received, in bit/s.
func (r *DatagramResult) Bps() float64 {
	if r.Duration <= 0 {
		return 0
	}
	return float64(r.Bytes) * 8 / r.Duration.Seconds()
}
