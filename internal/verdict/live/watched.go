package live

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Queues is the state of a socket's queues at one moment, in bytes.
type Queues struct {
	Unread, Unacked int64
	// SendQueued is the charged part of SendBuffer; 0 if the sizes are not known.
	SendQueued, SendBuffer int64
	Answered               bool // nothing came since the program sent something last
	// ReceiveRTT is the receiver's estimate of the round trip, SinceData the time since data came last; 0: not known.
	// SinceSent is the time since data was sent last.
	ReceiveRTT, SinceData, SinceSent time.Duration
	// DataSent and DataReceived count the segments with payload of this end and of the peer, retransmitted ones
	// included: tcpi_data_segs_out, tcpi_data_segs_in; 0: not known.
	DataSent, DataReceived int64
}

// Samples is a window of samples, oldest first, and the queues at each of them.
type Samples struct {
	Of     []transfer.Sample
	Queues []Queues
}

// Add appends a sample and drops those that are older than the length.
func (w *Samples) Add(s *transfer.Sample, q Queues, length time.Duration) {
	w.Of = append(w.Of, *s)
	w.Queues = append(w.Queues, q)
	old := 0
	for old < len(w.Of)-1 && s.At-w.Of[old].At > length {
		old++
	}
	if old > len(w.Of)/4 { // not at every sample
		w.Of = slices.Delete(w.Of, 0, old)
		w.Queues = slices.Delete(w.Queues, 0, old)
	}
}

// Answered returns the share of the samples at which nothing had come since this end's program sent
// something last.
func (w *Samples) Answered() float64 {
	n := 0
	for i := range w.Queues {
		if w.Queues[i].Answered {
			n++
		}
	}
	return float64(n) / float64(max(len(w.Queues), 1))
}

// Watched is a connection with a window of its samples.
type Watched struct {
	Samples
	Congestion                string              // "": not known
	Handshake                 *transfer.Handshake // nil: not known
	SendBuffer, ReceiveBuffer int64               // bytes; 0: not known
	// ReceiveBufferMax is the ceiling of automatic receive buffers, in bytes; 0: not known.
	ReceiveBufferMax int64
	PacingBps        float64 // SO_MAX_PACING_RATE; 0: none
	Acked            int64   // bytes in the connection's life
	// Requested has the buffers of the socket that are known to be requested, in bytes; 0: not known.
	Requested transfer.Socket
	// KnownWindow reports whether a program that is known by the ports has such a window, in bytes; nil: none is known.
	KnownWindow func(bytes float64) bool
}

// Judge returns the verdict on a direction in the window.
func (c *Watched) Judge(sends bool) verdict.Verdict {
	w := c.direction(sends)
	v := judgeWatched(&w)
	if sends {
		return ownExchanges(&w, v)
	}
	v = knownWindow(&w, answeredBlocks(&w, v), c.KnownWindow)
	if v.Limiter != verdict.Unknown {
		return v
	}
	w.ReceiveRTTs = c.receiveRTTs()
	if w.ReceiveRTTs == nil {
		return v
	}
	return judgeWatched(&w)
}

// direction returns a direction of the window. It sets the samples' queue to that direction's.
func (c *Watched) direction(sends bool) watchedDirection {
	w := watchedDirection{Sends: sends, Congestion: c.Congestion, Handshake: c.Handshake, PacingBps: c.PacingBps}
	w.Send.Granted = int(c.SendBuffer)
	w.Send.Requested = c.Requested.SendBuffer
	w.Receive.Granted = int(c.ReceiveBuffer)
	if c.Requested.ReceiveBuffer > 0 {
		w.Receive.Requested = c.Requested.ReceiveBuffer
	} else if c.receiveBufferIsFixed() {
		w.Receive.Requested = int(c.ReceiveBuffer / 2) // socket(7): the kernel doubles SO_RCVBUF
	} else {
		w.Receive.AutomaticMax = int(c.ReceiveBufferMax)
	}
	w.Samples = c.Of
	if n := len(c.Queues); n > 0 && c.Queues[0].DataSent > 0 {
		w.DataSent = c.Queues[n-1].DataSent - c.Queues[0].DataSent
	}
	for i := range w.Samples {
		s := &w.Samples[i]
		q := &c.Queues[i]
		s.Have |= transfer.HaveQueue
		s.Queued = q.Unacked
		if !sends {
			s.Queued = q.Unread
		}
		w.Send.Effective = max(w.Send.Effective, int(s.InFlight))
		w.Receive.Effective = max(w.Receive.Effective, int(s.ReceiveWnd))
	}
	w.Answered = c.Answered()
	if sends {
		w.queue = c.sendQueue()
		w.dataArrived = c.Acked >= 2*c.Handshake.SegmentSize()
	}
	return w
}

// receiveBufferIsFixed reports that the receive buffer is not at its ceiling and its window did not grow. Automatic
// sizing enlarges a buffer whose window limits, up to exactly the ceiling (tcp_rcv_space_adjust).
func (c *Watched) receiveBufferIsFixed() bool {
	if c.ReceiveBufferMax == 0 || c.ReceiveBuffer == 0 || c.ReceiveBuffer == c.ReceiveBufferMax {
		return false
	}
	half := len(c.Of) / 2
	return float64(largestWindow(c.Of[half:])) < threshold.WindowGrows.Value*float64(largestWindow(c.Of[:half]))
}
