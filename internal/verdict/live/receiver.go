package live

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// windowLimited is the time in which the peer's window alone held data back (tcp_info's
// rwnd_limited); where the kernel keeps no such clock, the time in which less than a
// segment fitted into the window.
func (c *connection) windowLimited(r *round) time.Duration {
	if c.has(transfer.HaveLimits) {
		return r.advance(func(s *transfer.Sample) time.Duration { return s.ReceiveLimited })
	}
	if !c.has(transfer.HaveSendWnd | transfer.HaveInFlight) {
		return 0
	}
	return scale(r.length, portion(r.samples, func(s *transfer.Sample) bool { return s.SendWnd-s.InFlight < c.mss }))
}

// unread says whether the receiving program leaves enough in its socket to matter: at
// least a quarter of what the window would be if it read all. One that mostly waits for
// data is not slow, whatever lies there at the moments when its host lets it run.
func (c *connection) unread(r *round) bool {
	const have = transfer.HaveQueue | transfer.HaveReceiveWnd
	if len(r.reading) > 0 && r.reading[0].Have&have == have {
		queued := mean(r.reading, func(s *transfer.Sample) float64 { return float64(s.Queued) })
		window := mean(r.reading, func(s *transfer.Sample) float64 { return float64(s.ReceiveWnd) })
		waited := c.readerSpent(r, func(s *transfer.Sample) time.Duration { return max(s.Blocked-s.RunDelay, 0) })
		return queued > 0 && queued >= threshold.Unread*(queued+window) && float64(waited) < threshold.MostlyWaiting*float64(
			r.length)
	}
	return c.has(transfer.HaveSendWnd) && (c.windowCloses(r) || c.outside && c.windowHasClosed(r))
}

// windowHasClosed says that the congestion window is far above the peer's: it grows only while
// it is used, to twice of what is under way (tcp_output.c, tcp_is_cwnd_limited), so the peer's
// window once held that and is no longer read from.
func (c *connection) windowHasClosed(r *round) bool {
	cwnd := r.end.Cwnd
	return c.has(transfer.HaveCwnd) && cwnd >= threshold.EarnedSegments*c.mss &&
		float64(cwnd) >= threshold.WindowHasClosed*float64(c.window(r))
}

// windowCloses says whether the window that the sender saw kept falling below half of
// its largest: a window that is merely small stays where it is.
func (c *connection) windowCloses(r *round) bool {
	largest := int64(0)
	for i := range c.samples {
		largest = max(largest, c.samples[i].SendWnd)
	}
	return portion(r.samples, func(s *transfer.Sample) bool {
		return float64(s.SendWnd) < threshold.WindowCloses*float64(
			largest)
	}) >=
		threshold.WindowClosesOften
}

// receiverRunDelayed says whether the reader was kept from its data by having no core, more
// than by its own pauses.
func (c *connection) receiverRunDelayed(r *round) bool {
	starved := c.readerSpent(r, runDelayClock)
	return starved > c.readerPaused(r) && ratio(starved, r.length) >= threshold.RunDelay
}

// receiverCPU is window-limited time in which the receiver had unread data because its
// thread ran without a break, or had no core to run on.
// A reader's samples count what its core took to wake up, the account of the whole does not.
func (a *analysis) receiverCPU(c *connection, r *round) time.Duration {
	others := a.receiver == nil || a.receiver.CPU == nil || a.receiver.CPU.ThreadRunDelay >= threshold.RunDelay
	if !saturated(a.receiver) && !(others && c.receiverRunDelayed(r)) || !c.unread(r) {
		return 0
	}
	return c.windowLimited(r)
}

// receiverApplication is window-limited time in which the receiving program left data unread, and all
// time in which it did so because it mostly paused: between two of its reads the window
// may be open, and what comes waits all the same.
func (a *analysis) receiverApplication(c *connection, r *round) time.Duration {
	switch {
	case saturated(a.receiver) || c.receiverRunDelayed(r) || !c.unread(r):
		return 0
	case float64(c.readerPaused(r)) >= threshold.MostlyWaiting*float64(r.length):
		return r.length
	}
	return c.windowLimited(r)
}

// readerPaused is the time the receiving program chose not to read.
func (c *connection) readerPaused(r *round) time.Duration {
	return c.readerSpent(r, func(s *transfer.Sample) time.Duration { return s.Paused })
}

// readerSpent is how far one of the receiving program's clocks ran in the round.
func (c *connection) readerSpent(r *round, clock func(*transfer.Sample) time.Duration) time.Duration {
	n := len(r.reading)
	if n < 2 || r.reading[0].Have&transfer.HaveProgram == 0 {
		return 0
	}
	a := &r.reading[0]
	b := &r.reading[n-1]
	return scale(r.length, ratio(clock(b)-clock(a), b.At-a.At))
}

// receiverWindow is window-limited time at a rate that the window explains.
func (a *analysis) receiverWindow(c *connection, r *round) time.Duration {
	if c.unread(r) || a.mayBeLink(c, r) || !a.limiting(c.window(r), r.bps) {
		return 0
	}
	return a.heldByWindow(c, r)
}

// heldByWindow is the time in which the peer's window held data back. A sender that paces (BBR) to the
// rate that a window gave fills it at times only: the window holds back the rest too.
func (a *analysis) heldByWindow(c *connection, r *round) time.Duration {
	if c.paced() && c.windowFull >= threshold.PacedWindow && r.start.At >= c.startedAt &&
		a.path.allows(c.window(r)) <= threshold.WindowLimits*a.usual(r.bps) {
		return r.length
	}
	return c.windowLimited(r)
}

// window is the largest window that the peer advertised in the round; where the kernel
// does not tell, what was in flight under it.
func (c *connection) window(r *round) (most int64) {
	if !c.has(transfer.HaveSendWnd) {
		return c.outstanding(r)
	}
	for i := range r.samples {
		most = max(most, r.samples[i].SendWnd)
	}
	return most
}

// windowSubtype says why the receive window is what it is.
func (c *connection) windowSubtype() string {
	f := verdict.WindowFacts{Scale: 0}
	for i := range c.rounds {
		f.Largest = max(f.Largest, c.window(&c.rounds[i]))
	}
	f.Middle = c.window(&c.rounds[len(c.rounds)/2])
	f.Last = c.window(&c.rounds[len(c.rounds)-1])
	if h := c.sender.Handshake; h != nil {
		f.Scale = h.SendScale
		f.ScaleKnown = true
	}
	if c.receiver != nil {
		f.Automatic = c.receiver.ReceiveBuffer.Automatic()
		f.SizeKnown = true
		f.Requested = int64(c.receiver.ReceiveBuffer.Requested)
	}
	return f.Subtype()
}
