package limiter

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// windowLimited is the time in which the peer's window alone held data back (tcp_info's
// rwnd_limited); where the kernel keeps no such clock, the time in which less than a
// segment fitted into the window.
func (c *connection) windowLimited(r *round) time.Duration {
	if c.has(transfer.HaveLimits) {
		return r.spent(func(s *transfer.Sample) time.Duration { return s.ReceiveLimited })
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
	const matters = 0.25
	const have = transfer.HaveQueue | transfer.HaveReceiveWnd
	if len(r.reader) > 0 && r.reader[0].Have&have == have {
		queued := mean(r.reader, func(s *transfer.Sample) float64 { return float64(s.Queued) })
		window := mean(r.reader, func(s *transfer.Sample) float64 { return float64(s.ReceiveWnd) })
		waited := c.readerSpent(r, func(s *transfer.Sample) time.Duration { return max(s.Blocked-s.Starved, 0) })
		return queued > 0 && queued >= matters*(queued+window) && waited < r.length/2
	}
	return c.has(transfer.HaveSendWnd) && c.windowCloses(r)
}

// windowCloses says whether the window that the sender saw kept falling below half of
// its largest: a window that is merely small stays where it is.
func (c *connection) windowCloses(r *round) bool {
	largest := int64(0)
	for i := range c.samples {
		largest = max(largest, c.samples[i].SendWnd)
	}
	return portion(r.samples, func(s *transfer.Sample) bool { return s.SendWnd < largest/2 }) >= 0.25
}

// starvedReader says whether the reader was kept from its data by having no core, more
// than by its own pauses.
func (c *connection) starvedReader(r *round) bool {
	starved := c.readerSpent(r, starvedClock)
	return starved > c.readerPaused(r) && ratio(starved, r.length) >= starvedMatters
}

// receiverCPU is window-limited time in which the receiver had unread data because its
// thread ran without a break, or had no core to run on.
func (h *hearing) receiverCPU(c *connection, r *round) time.Duration {
	if !saturated(h.receiver) && !c.starvedReader(r) || !c.unread(r) {
		return 0
	}
	return c.windowLimited(r)
}

// reader is window-limited time in which the receiving program left data unread, and all
// time in which it did so because it mostly paused: between two of its reads the window
// may be open, and what comes waits all the same.
func (h *hearing) reader(c *connection, r *round) time.Duration {
	switch {
	case saturated(h.receiver) || c.starvedReader(r) || !c.unread(r):
		return 0
	case c.readerPaused(r) >= r.length/2:
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
	n := len(r.reader)
	if n < 2 || r.reader[0].Have&transfer.HaveProgram == 0 {
		return 0
	}
	a, b := &r.reader[0], &r.reader[n-1]
	return scale(r.length, ratio(clock(b)-clock(a), b.At-a.At))
}

// receiverWindow is window-limited time at a rate that the window explains.
func (h *hearing) receiverWindow(c *connection, r *round) time.Duration {
	if c.unread(r) || !h.limiting(c.window(r), r.bps) {
		return 0
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
	const unscaledMost = 65535 // RFC 7323: what 16 bits hold
	largest := int64(0)
	for i := range c.rounds {
		largest = max(largest, c.window(&c.rounds[i]))
	}
	middle, last := c.window(&c.rounds[len(c.rounds)/2]), c.window(&c.rounds[len(c.rounds)-1])
	fixed := c.receiver != nil && !c.receiver.ReceiveBuffer.Automatic()
	scale := 0
	if c.sender.Handshake != nil {
		scale = c.sender.Handshake.SendScale
	}
	atMost := float64(largest) >= 0.9*unscaledMost && largest <= unscaledMost
	switch {
	case scale < 0 && (atMost || !fixed):
		return Unscaled
	case fixed: // a small SO_RCVBUF offers a scale of 0
		return Fixed
	case scale == 0 && atMost && c.sender.Handshake != nil:
		return Unscaled
	case float64(last) >= 1.25*float64(middle):
		return AutotuneGrowing
	}
	return Stuck
}
