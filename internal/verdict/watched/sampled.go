// Package watched judges a connection whose program is not ours, which its kernel was asked about from outside: by a
// window of samples with the state of the socket's queues, or by the kernel's cumulative counters where samples are
// too few.
package watched

import (
	"maps"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Queues is the state of a socket's queues at one moment, in bytes.
type Queues struct {
	Unread, Unacked int64
	// SendQueued is the charged part of SendBuffer; 0 if the sizes are not known.
	SendQueued, SendBuffer int64
	Answered               bool // nothing came since the program sent something last
	// ReceiveRTT is the receiver's estimate of the round trip, SinceData the time since data came last; 0: not known.
	ReceiveRTT, SinceData time.Duration
	// DataSent counts the segments with payload that this end sent: tcpi_data_segs_out; 0: not
	// known.
	DataSent int64
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

// Connection is a connection with a window of its samples.
type Connection struct {
	Samples
	Congestion                string              // "": not known
	Handshake                 *transfer.Handshake // nil: not known
	SendBuffer, ReceiveBuffer int64               // bytes; 0: not known
	// ReceiveBufferMax is the ceiling of automatic receive buffers, in bytes; 0: not known.
	ReceiveBufferMax int64
	PacingBps        float64 // SO_MAX_PACING_RATE; 0: none
	Acked            int64   // bytes in the connection's life
	// KnownWindow reports whether a program that is known by the ports has such a window, in bytes; nil: none is known.
	KnownWindow func(bytes float64) bool
}

// Judge returns the verdict on a direction in the window. If the live judge cannot distinguish the program from its
// send buffer, the fill level of that buffer decides.
func (c *Connection) Judge(sends bool) verdict.Verdict {
	w := c.Live(sends)
	v := live.JudgeWatched(w)
	if !sends {
		v = live.KnownWindow(w, live.AnsweredBlocks(w, v), c.KnownWindow)
		if v.Limiter != verdict.Unknown {
			return withoutBlocked(v)
		}
		w.ReceiveRTTs = c.receiveRTTs()
		if w.ReceiveRTTs != nil {
			v = live.JudgeWatched(w)
		}
		return withoutBlocked(v)
	}
	v = withoutBlocked(v)
	return live.Programs(w, c.lowerIfDataArrived(ambiguousWindow(c.bufferOrLink(c.splitSenderTime(v)))))
}

// withoutBlocked removes the time in which the writer was blocked: its own clock is not known.
func withoutBlocked(v verdict.Verdict) verdict.Verdict {
	for i := range v.Evidence {
		delete(v.Evidence[i].Values, "blocked_ratio")
	}
	return v
}

// Live returns a direction of the window as the live judge takes it. It sets the samples' queue to that direction's.
func (c *Connection) Live(sends bool) live.Watched {
	w := live.Watched{Sends: sends, Congestion: c.Congestion, Handshake: c.Handshake, PacingBps: c.PacingBps}
	w.Send.Granted = int(c.SendBuffer)
	w.Receive.Granted = int(c.ReceiveBuffer)
	if c.receiveBufferIsFixed() {
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
	return w
}

// receiveBufferIsFixed reports that the receive buffer is not at its ceiling and its window did not grow. Automatic
// sizing enlarges a buffer whose window limits, up to exactly the ceiling (tcp_rcv_space_adjust).
func (c *Connection) receiveBufferIsFixed() bool {
	if c.ReceiveBufferMax == 0 || c.ReceiveBuffer == 0 || c.ReceiveBuffer == c.ReceiveBufferMax {
		return false
	}
	half := len(c.Of) / 2
	return float64(largestWindow(c.Of[half:])) < threshold.WindowGrows.Value*float64(largestWindow(c.Of[:half]))
}

func largestWindow(samples []transfer.Sample) (largest int64) {
	for i := range samples {
		largest = max(largest, samples[i].ReceiveWnd)
	}
	return largest
}

// bufferOrLink leaves a full link undecided if the send buffer was always full and is too small for the rate over the
// empty path: the kernel accepts super-segments of 64 KB beyond the buffer, and their bursts queue on any link.
func (c *Connection) bufferOrLink(v verdict.Verdict) verdict.Verdict {
	if v.Limiter != verdict.Bottleneck || !c.alwaysFull() {
		return v
	}
	at := slices.IndexFunc(v.Evidence, func(e verdict.Evidence) bool {
		return e.Limiter == verdict.Bottleneck && e.Values["rtt_base_s"] > 0
	})
	if at < 0 {
		return v
	}
	seen := v.Evidence[at].Values
	rate := seen["steady_bps"]
	base := seen["rtt_base_s"]
	size := float64(c.Queues[0].SendBuffer)
	if 8*size > threshold.WindowLimits.Value*rate*base {
		return v
	}
	share := v.Shares[verdict.Bottleneck]
	v.Shares = maps.Clone(v.Shares)
	delete(v.Shares, verdict.Bottleneck)
	v.Shares[verdict.Unknown] += share
	v.Limiter = verdict.Unknown
	v.Subtype = ""
	v.Confidence = verdict.Low
	v.Candidates = []verdict.Name{verdict.SendBuffer, verdict.Bottleneck}
	v.Evidence = slices.Insert(slices.Clone(v.Evidence), 0, verdict.Evidence{Limiter: verdict.Unknown,
		Code: verdict.SendBufferOrLink, Values: verdict.Values{"time_ratio": share, "window_bytes": size,
			"allows_bps": 8 * size / base, "steady_bps": rate, "rtt_s": seen["rtt_s"], "rtt_base_s": base}})
	return v
}

// alwaysFull says that the send buffer was, at nearly all samples.
func (c *Connection) alwaysFull() bool {
	full := 0.0
	for i := range c.Queues {
		q := &c.Queues[i]
		if q.SendBuffer > 0 && float64(q.SendQueued) >= threshold.FullBuffer*float64(q.SendBuffer) {
			full++
		}
	}
	return c.writerBlocks() && full >= threshold.FlatShare.Value*float64(len(c.Queues))
}

// lowerIfDataArrived is less sure of an MTU black hole where full segments have come through before: then
// nobody may be there any more.
func (c *Connection) lowerIfDataArrived(v verdict.Verdict) verdict.Verdict {
	if v.Limiter == verdict.MTUBlackHole && c.Acked >= 2*c.Handshake.SegmentSize() {
		v.Confidence = verdict.Low
	}
	return v
}

// writerBlocks reports whether the program ever waited for the send buffer in the window. It writes until the queued
// data reaches the buffer's size (sk_stream_memory_free), so a queue that is always much smaller means no waiting.
func (c *Connection) writerBlocks() bool {
	for i := range c.Queues {
		q := &c.Queues[i]
		if q.SendBuffer > 0 && float64(q.SendQueued) >= threshold.FilledBuffer*float64(q.SendBuffer) {
			return true
		}
	}
	first := &c.Of[0]
	last := &c.Of[len(c.Of)-1]
	return last.SndbufLimited > first.SndbufLimited
}

// ambiguousWindow keeps both candidates that a sender cannot distinguish: a small window, and a program that does not
// read.
func ambiguousWindow(v verdict.Verdict) verdict.Verdict {
	small := v.Shares[verdict.ReceiverWindow]
	unread := v.Shares[verdict.ReceiverApplication]
	if v.Limiter != verdict.ReceiverWindow && v.Limiter != verdict.ReceiverApplication || v.Subtype == verdict.Unscaled {
		return v
	}
	v.Candidates = []verdict.Name{verdict.ReceiverWindow, verdict.ReceiverApplication}
	if min(small, unread) >= threshold.CandidateShare.Value {
		v.Confidence = verdict.Low
	}
	return v
}

// splitSenderTime gives the time in which all that was written was on its way to the send buffer
// where that was full, and to the program where it had room.
func (c *Connection) splitSenderTime(v verdict.Verdict) verdict.Verdict {
	share := v.Shares[verdict.Sender]
	if share <= 0 {
		return v
	}
	mss := c.Handshake.SegmentSize()
	var crowded, roomy, n float64
	var used, size int64
	blocks := c.writerBlocks()
	for i := range c.Queues {
		q := &c.Queues[i]
		if c.Of[i].NotSent >= mss || q.SendBuffer == 0 {
			continue
		}
		n++
		if q.SendQueued > used || size == 0 { // the size at that time: an automatic buffer changes
			used = q.SendQueued
			size = q.SendBuffer
		}
		switch full := float64(q.SendQueued) / float64(q.SendBuffer); {
		case full >= threshold.FullBuffer && blocks:
			crowded++
		case full < threshold.RoomyBuffer || !blocks:
			roomy++
		}
	}
	if n == 0 {
		return v
	}
	shares := verdict.Shares{}
	for name, s := range v.Shares {
		shares[name] = s
	}
	delete(shares, verdict.Sender)
	for name, s := range map[verdict.Name]float64{verdict.SendBuffer: crowded / n, verdict.Application: roomy / n,
		verdict.Sender: 1 - (crowded+roomy)/n} {
		s *= share
		if s > 1e-9 {
			shares[name] += s
		}
	}
	dry := crowded / float64(len(c.Of))
	if dry >= threshold.HeadlineShare.Value || dry >= threshold.BufferEmpty.Value && showsNoFullLink(v) {
		// A buffer that is empty that often is refilled in bursts, and the kernel does not open an unused congestion
		// window (RFC 7661): the buffer limits the rest of the time too.
		for _, name := range []verdict.Name{verdict.Congestion, verdict.Bottleneck, verdict.SlowStart} {
			shares[verdict.SendBuffer] += shares[name]
			delete(shares, name)
		}
	}
	out := verdict.Headline(shares)
	out.Evidence = append(v.Evidence, verdict.Evidence{Limiter: verdict.Sender, Code: verdict.SendQueueSeen,
		Values: verdict.Values{"queued_bytes": float64(used), "granted_bytes": float64(size), "full_ratio": crowded / n,
			"room_ratio": roomy / n}})
	switch out.Limiter {
	case verdict.Mixed: // the candidates are those of the new shares
	case v.Limiter:
		out.Subtype = v.Subtype
		out.Confidence = v.Confidence
		out.Candidates = v.Candidates
	case verdict.Application, verdict.SendBuffer:
		out.Confidence = verdict.Medium
	case verdict.Sender:
		out.Candidates = []verdict.Name{verdict.Application, verdict.SendBuffer}
	}
	return out
}

// showsNoFullLink reports that the evidence on the network is no more than a congestion window or a rate: no loss, and
// no queue.
func showsNoFullLink(v verdict.Verdict) bool {
	for _, e := range v.Evidence {
		switch e.Code {
		case verdict.CwndFull, verdict.CwndOpens, verdict.CwndOpensToTheEnd, verdict.FullLinkNoQueue:
			return true
		}
	}
	return false
}
