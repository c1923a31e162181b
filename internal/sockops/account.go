package sockops

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// Seen reports whether the connection's counters were ever read. Short connections may be missed under load.
func (c *Connection) Seen() bool { return len(c.samples) > 0 }

func (c *Connection) last() transfer.Sample {
	if n := len(c.samples); n > 0 {
		return c.samples[n-1].Sample
	}
	return transfer.Sample{}
}

// queueSample is a sample with both queues; the direction selects Sample.Queued.
type queueSample struct {
	transfer.Sample
	queues live.Queues
}

// sent excludes SYN and FIN, which Acked counts and Sent does not.
func sent(s transfer.Sample) int64 {
	if s.Sent == 0 { // before Linux 4.19; an open connection has its SYN acknowledged
		return max(s.Acked-1, 0)
	}
	return min(s.Acked, s.Sent-s.RetransmittedBytes)
}

// received returns the payload that arrived in order. The peer's FIN counts as one byte if payload arrived.
func received(s transfer.Sample) int64 { return s.Received }

// Result returns one direction of the connection as a transfer, or nil without payload. It has no data of the far
// end. The transfer starts and ends with its payload, without idle time before and after.
func (c *Connection) Result(d transfer.Direction, asked transfer.Socket) *transfer.Result {
	counter := sent
	if d == transfer.Down {
		counter = received
	}
	s := c.Stream
	s.Bytes = counter(c.last())
	if s.Bytes <= 0 {
		return nil
	}
	for _, r := range c.samples {
		r.Queued = r.queues.Unacked
		if d == transfer.Down {
			r.Queued = r.queues.Unread
		}
		s.Samples = append(s.Samples, r.Sample)
	}
	s.First, s.Last = moved(s.Samples, counter, c.heard)
	return &transfer.Result{
		Spec: transfer.Spec{Direction: d, Near: asked, Time: s.Last - s.First},
		Near: &transfer.End{Streams: []transfer.Stream{s}}, Complete: true,
	}
}

// Watched returns the connection as its judge takes it, during a result of it. Its program is not ours, so it is judged
// as a connection that `watch` follows, with the buffers that are known to be requested.
func (c *Connection) Watched(r *transfer.Result) *live.Watched {
	s := &r.Near.Streams[0]
	w := &live.Watched{Congestion: s.Congestion, Handshake: s.Handshake, SendBuffer: int64(s.SendBuffer.Granted),
		ReceiveBuffer: int64(s.ReceiveBuffer.Granted), PacingBps: r.Spec.Near.PacingBps, Acked: c.last().Acked,
		Requested: transfer.Socket{SendBuffer: s.SendBuffer.Requested, ReceiveBuffer: s.ReceiveBuffer.Requested}}
	for _, one := range c.samples {
		if one.At >= s.First && one.At <= s.Last {
			w.Add(&one.Sample, one.queues, s.Last)
		}
	}
	return w
}

// moved returns when a counter left 0 and when it reached its last value, at sample resolution. heard is the time
// of the peer's last packet.
func moved(samples []transfer.Sample, counter func(transfer.Sample) int64, heard time.Duration) (first,
	last time.Duration) {
	total := counter(samples[len(samples)-1])
	for _, s := range samples {
		if counter(s) == 0 {
			first = s.At
		}
		last = s.At
		if counter(s) == total {
			break
		}
	}
	if heard > first {
		last = min(last, heard)
	}
	return first, last
}
