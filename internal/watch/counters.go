package watch

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// counters are the fields of a snapshot that only grow. Each connection keeps two, so they are a third of a Sample.
type counters struct {
	At                                        time.Duration
	Have                                      transfer.Fields
	Reordered                                 uint32
	Acked, Sent, RetransmittedBytes, Received int64 // bytes
	Retransmitted                             int64 // segments
	Busy, ReceiveLimited, SendLimited         time.Duration
}

func (t *Snapshot) counters() counters {
	s := &t.Sample
	return counters{At: s.At, Have: s.Have, Reordered: t.Reordered, Acked: s.Acked, Sent: s.Sent,
		RetransmittedBytes: s.RetransmittedBytes, Received: s.Received, Retransmitted: s.Retransmitted, Busy: s.Busy,
		ReceiveLimited: s.RwndLimited, SendLimited: s.SndbufLimited}
}

// sample returns the counters as a judge takes them.
func (c *counters) sample() *transfer.Sample {
	return &transfer.Sample{At: c.At, Have: c.Have, Acked: c.Acked, Received: c.Received, Busy: c.Busy,
		RwndLimited: c.ReceiveLimited, SndbufLimited: c.SendLimited}
}

// ceilings are the largest sizes of automatic buffers (net.ipv4.tcp_wmem and tcp_rmem, the third values), in bytes;
// 0: not known.
type ceilings struct{ send, receive int64 }

// reached returns the ceilings that the buffers of a connection have reached, else 0. The kernel sets an automatic
// buffer to exactly the ceiling then (tcp_sndbuf_expand, tcp_rcv_space_adjust).
func (c ceilings) reached(t *Snapshot) (out ceilings) {
	if t.SendBuffer == c.send {
		out.send = c.send
	}
	if t.ReceiveBuffer == c.receive {
		out.receive = c.receive
	}
	return out
}

// queues returns the state of the socket's queues.
func (t *Snapshot) queues() live.Queues {
	return live.Queues{Unread: t.Unread, Unacked: t.Unacked, SendQueued: t.SendQueued, SendBuffer: t.SendBuffer,
		Answered: t.Answered, ReceiveRTT: t.ReceiveRTT, SinceData: t.SinceData,
		SinceSent: t.SinceSent, DataSent: t.DataSent, DataReceived: t.DataReceived}
}

// count adds a snapshot to the period's tally.
func (c *Connection) count(t *Snapshot) {
	c.tally.Add(&t.Sample, t.queues(), t.Polled, c.Handshake.SegmentSize())
}

// payloadSent returns bytes_acked without SYN and FIN: at most the bytes sent less the retransmitted ones. syn is the
// acknowledged SYN. Before Linux 4.19 only the SYN can be subtracted.
func (c *counters) payloadSent(syn int64) int64 {
	if c.Sent == 0 && c.Have&transfer.HaveSendWnd == 0 {
		return max(c.Acked-1, 0)
	}
	return max(min(c.Acked-syn, c.Sent-c.RetransmittedBytes), 0)
}
