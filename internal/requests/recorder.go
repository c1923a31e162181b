package requests

import (
	"net"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/turns"
)

const (
	maxDuration = int64(100 * time.Second) // ns; longer turns count as this long
	digits      = 3                        // significant ones of a percentile
	maxSampled  = 4_096                    // turns of all streams that are kept evenly
	maxSlow     = 16_384                   // suspicious turns of all streams
	// lookEvery is the longest time in which retransmissions are not separated by turn.
	lookEvery = 5 * time.Millisecond
	// medianEvery is the number of turns after which the usual duration is computed again.
	medianEvery = 1_024
)

// recorder keeps the turns of one stream in bounded memory, which it has from the beginning.
type recorder struct {
	stream                          uint16
	number                          uint32 // of the turn
	failed, unanswered, connections int64
	responded                       int64 // bytes

	histogram    *hdrhistogram.Histogram
	sample, slow []turns.Exchange
	every        uint32 // one turn in every is sampled
	longest      int64
	usual        int64 // median; 0: not known yet
	slowLeftOut  int64

	lookedAt       time.Duration
	seen           socket.Repairs // at the last look
	lostSYNs       int64          // of the present connection
	leastRoundTrip time.Duration
	smoothed       time.Duration // round trip, of the last connection whose handshake lost nothing
}

func newRecorder(stream, streams int) recorder {
	return recorder{stream: uint16(stream), histogram: hdrhistogram.New(1, maxDuration, digits), every: 1,
		sample: make([]turns.Exchange, 0, max(maxSampled/streams, 64)),
		slow:   make([]turns.Exchange, 0, max(maxSlow/streams, 64))}
}

// connected notes a new connection.
func (r *recorder) connected(conn *net.TCPConn, took time.Duration) {
	r.seen = socket.Repairs{}
	r.lostSYNs = 0
	if took < lookEvery {
		return
	}
	r.seen = socket.RepairsOf(conn)
	r.lostSYNs = r.seen.Retransmitted
}

// record keeps a turn. Parts of it are the wait for a free stream and for the connection.
func (r *recorder) record(conn Conn, start, took, backlog, connect time.Duration) {
	d := min(int64(took), maxDuration)
	r.histogram.RecordValue(d)
	r.longest = max(r.longest, d)
	if r.number%medianEvery == 0 {
		r.usual = r.histogram.ValueAtQuantile(50)
	}
	x := turns.Exchange{Stream: r.stream, Number: r.number, Start: int64(start), Duration: int64(took),
		Backlog: int64(backlog)}
	parts := conn.Parts()
	x.FirstByte = int64(parts.FirstByte)
	if connect > 0 {
		x.TLS = min(int64(parts.TLS), int64(connect))
		x.TLSRounds = parts.TLSRounds
		x.Connect = int64(connect) - x.TLS
		x.LostSYNs = r.lostSYNs
	}
	if end := start + took; took-backlog >= lookEvery || end-r.lookedAt >= lookEvery {
		r.look(conn.TCP(), end, &x)
	}
	if x.Client.Segments > 0 || x.LostSYNs > 0 || r.suspicious(int64(took-backlog)) {
		if len(r.slow) < cap(r.slow) {
			r.slow = append(r.slow, x)
		} else {
			r.slowLeftOut++
		}
	}
	if r.number%r.every != 0 {
		return
	}
	if len(r.sample) == cap(r.sample) {
		for i := range len(r.sample) / 2 {
			r.sample[i] = r.sample[2*i+1]
		}
		r.sample = r.sample[:len(r.sample)/2]
		r.every *= 2
		if r.number%r.every != 0 {
			return
		}
	}
	r.sample = append(r.sample, x)
}

// suspicious reports whether a turn may contain a stall.
func (r *recorder) suspicious(took int64) bool {
	path := turns.Path{RoundTrip: int64(r.leastRoundTrip)}
	return took >= path.Suspicious() && took > r.usual+r.usual/2
}

// look reads what this end retransmitted since the last look.
func (r *recorder) look(conn *net.TCPConn, now time.Duration, x *turns.Exchange) {
	r.lookedAt = now
	c := socket.RepairsOf(conn)
	if !c.Known {
		return
	}
	x.Client = turns.Repaired{Segments: c.Retransmitted - r.seen.Retransmitted, Timeouts: -1}
	if c.RTOs >= 0 {
		x.Client.Timeouts = c.RTOs - max(r.seen.RTOs, 0)
	}
	// After a retransmission the kernel's least round trip may have the resolution of timestamps, 1 ms too short.
	if c.MinRTT > 0 && c.Retransmitted == 0 && (r.leastRoundTrip == 0 || c.MinRTT < r.leastRoundTrip) {
		r.leastRoundTrip = c.MinRTT
	}
	if r.lostSYNs == 0 { // else the kernel's first sample contains the wait for the lost SYN
		r.smoothed = c.RTT
	}
	r.seen = c
}
