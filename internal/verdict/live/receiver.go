package live

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// windowLimited returns the rwnd-limited time (tcp_info's rwnd_limited). Without that clock it is the time in which
// less than a segment fitted into the window.
func (c *connection) windowLimited(r *round) time.Duration {
	if c.has(transfer.HaveLimits) {
		return r.advance(func(s *transfer.Sample) time.Duration { return s.RwndLimited })
	}
	return c.segmentBlocked(r)
}

// segmentBlocked returns the time in which less than a segment fitted into the receive window, by samples. If the
// receiver closes the window, this is more than the rwnd-limited time, which ends with each small window update.
func (c *connection) segmentBlocked(r *round) time.Duration {
	if !c.has(transfer.HaveSendWnd | transfer.HaveInFlight) {
		return 0
	}
	return scale(r.length, portion(r.samples, func(s *transfer.Sample) bool { return s.SendWnd-s.InFlight < c.mss }))
}

// leavesUnread reports whether the receiving program leaves enough in its socket to matter: a quarter of the
// window that would be open if it read all. A program that mostly waits for data is not slow, even with unread data at
// the moments when its host lets it run.
func (c *connection) leavesUnread(r *round, isWatched bool) bool {
	const have = transfer.HaveQueue | transfer.HaveReceiveWnd
	if len(r.receiverSamples) > 0 && r.receiverSamples[0].Have&have == have {
		queued := mean(r.receiverSamples, func(s *transfer.Sample) float64 { return float64(s.Queued) })
		window := mean(r.receiverSamples, func(s *transfer.Sample) float64 { return float64(s.ReceiveWnd) })
		waited := c.readerSpent(r, func(s *transfer.Sample) time.Duration { return max(s.Blocked-s.RunqueueWait, 0) })
		return queued > 0 && queued >= threshold.Unread.Value*(queued+window) &&
			float64(waited) < threshold.MostlyWaiting.Value*float64(r.length)
	}
	return c.has(transfer.HaveSendWnd) && (c.windowCloses(r) || isWatched && c.cwndOutgrewWindow(r))
}

// cwndOutgrewWindow reports whether the congestion window is far above the receive window. It grows only while it is
// used, up to twice the bytes in flight (tcp_output.c, tcp_is_cwnd_limited), so the receive window was once larger and
// its data is no longer read.
func (c *connection) cwndOutgrewWindow(r *round) bool {
	cwnd := r.end.Cwnd
	return c.has(transfer.HaveCwnd) && cwnd >= int64(threshold.EarnedSegments.Value)*c.mss &&
		float64(cwnd) >= threshold.WindowHasClosed.Value*float64(c.window(r))
}

// windowCloses reports whether the receive window often fell below half of its largest size. A window that is merely
// small does not.
func (c *connection) windowCloses(r *round) bool {
	largest := int64(0)
	for i := range c.samples {
		largest = max(largest, c.samples[i].SendWnd)
	}
	return portion(r.samples, func(s *transfer.Sample) bool {
		return float64(s.SendWnd) < threshold.WindowCloses.Value*float64(
			largest)
	}) >=
		threshold.WindowClosesOften.Value
}

// readerPaused returns the time in which the receiving program chose not to read.
func (c *connection) readerPaused(r *round) time.Duration {
	return c.readerSpent(r, func(s *transfer.Sample) time.Duration { return s.Paused })
}

// readerSpent returns how far one of the receiving program's clocks ran in the round.
func (c *connection) readerSpent(r *round, clock func(*transfer.Sample) time.Duration) time.Duration {
	n := len(r.receiverSamples)
	if n < 2 || r.receiverSamples[0].Have&transfer.HaveProgram == 0 {
		return 0
	}
	a := &r.receiverSamples[0]
	b := &r.receiverSamples[n-1]
	return scale(r.length, ratio(clock(b)-clock(a), b.At-a.At))
}

// windowTime returns the time that the receive window limits. A sender that paces to the rate of a small window (BBR)
// fills that window only at times. The window then limits the rest of the time too.
func (a *analysis) windowTime(c *connection, r *round) time.Duration {
	if c.isModelPaced() && c.windowFullRatio >= threshold.PacedWindow.Value && r.start.At >= c.startedAt &&
		a.path.rateAtBaseRTT(c.window(r)) <= threshold.WindowLimits.Value*a.smoothedRate(r.bps) {
		return r.length
	}
	return c.windowLimited(r)
}

// window returns the largest receive window that the peer advertised in the round. If the kernel does not report it,
// it returns the bytes in flight.
func (c *connection) window(r *round) (most int64) {
	if !c.has(transfer.HaveSendWnd) {
		return c.outstanding(r)
	}
	for i := range r.samples {
		most = max(most, r.samples[i].SendWnd)
	}
	return most
}

// largestWindow returns the largest receive window that the sender saw, in bytes; 0: not known.
func (c *connection) largestWindow() (most int64) {
	for i := range c.samples {
		most = max(most, c.samples[i].SendWnd)
	}
	return most
}

// windowSubtype says why the receive window is what it is. A clamp that was asked for is fixed, although the system
// sizes the buffer behind it.
func (a *analysis) windowSubtype() string {
	c := a.connections[0]
	f := verdict.WindowFacts{Scale: 0}
	for i := range c.rounds {
		f.Largest = max(f.Largest, c.window(&c.rounds[i]))
	}
	f.First = c.samples[0].SendWnd
	f.Middle = c.window(&c.rounds[len(c.rounds)/2])
	f.Last = c.window(&c.rounds[len(c.rounds)-1])
	if h := c.sender.Handshake; h != nil {
		f.Scale = h.SendScale
		f.ScaleKnown = true
	}
	if c.receiver != nil {
		clamp := int64(a.result.Spec.Near.Clamp)
		if a.result.Spec.Direction == transfer.Up {
			clamp = int64(a.result.Spec.Far.Clamp)
		}
		clamped := clamp > 0 && f.Largest+c.mss > clamp
		f.Automatic = c.receiver.ReceiveBuffer.Automatic() && !clamped
		f.Constant = c.receiver.ReceiveBuffer.Constant
		f.SizeKnown = true
		f.Requested = int64(c.receiver.ReceiveBuffer.Requested)
	}
	return f.Subtype()
}
