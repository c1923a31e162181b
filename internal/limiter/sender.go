package limiter

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// The rules of the sending end and of the windows. Each answers how much of the round
// it accounts for.

const (
	// fullNotLimiting is how far window / round trip may lie above the rate for the
	// window to be what limits: beyond it the round trip is longer than the path's, which
	// means that a queue holds what the window lets out.
	fullNotLimiting = 1.2
	// saturatedThread is the share of wall time from which a data thread has no more to give.
	saturatedThread = 0.9
)

func saturated(e *transfer.End) bool {
	return e != nil && e.CPU != nil && e.CPU.BusiestThread >= saturatedThread
}

// limiting says whether a window of so many bytes explains the round's rate.
func (h *hearing) limiting(window int64, bps float64) bool {
	return h.path.base > 0 && float64(window)*8/h.path.base.Seconds() <= fullNotLimiting*bps
}

// idle is the time in which nothing was queued or outstanding (tcp_info's busy_time
// taken from wall time).
func (c *connection) idle(r *round) time.Duration {
	if !c.has(transfer.HaveLimits) {
		return 0
	}
	return r.length - r.spent(func(s *transfer.Sample) time.Duration { return s.Busy })
}

// blocked and paused are what the writer knows of itself.
func (c *connection) blocked(r *round) time.Duration {
	return r.spent(func(s *transfer.Sample) time.Duration { return s.Blocked })
}

func (c *connection) paused(r *round) time.Duration {
	return r.spent(func(s *transfer.Sample) time.Duration { return s.Paused })
}

// allSent is the share of the round in which everything the program had written was on
// its way: then neither the network nor a window held anything back, and what the
// program did meanwhile decides.
func (c *connection) allSent(r *round) float64 {
	if !c.has(transfer.HaveNotSent) {
		return 0
	}
	return portion(r.samples, func(s *transfer.Sample) bool { return s.NotSent < c.mss })
}

// senderCPU is the time the writer neither waited nor paused, when its thread ran
// without a break.
func (h *hearing) senderCPU(c *connection, r *round) time.Duration {
	if !saturated(h.sender) {
		return 0
	}
	return r.length - c.blocked(r) - c.paused(r)
}

// application is the time without anything to send: idle by the kernel's clock, or, for
// a program that writes little and often and so always has something outstanding, the
// time it chose not to write while all it had written was sent. A writer that waits
// (for the kernel's space or by its own buffering rule) is not idle.
func (h *hearing) application(c *connection, r *round) time.Duration {
	idle := c.idle(r)
	if !c.has(transfer.HaveProgram) {
		return idle
	}
	idle = min(idle, r.length-c.blocked(r))
	return max(idle, min(c.paused(r), scale(r.length, c.allSent(r))))
}

// sendBuffer is the kernel's sndbuf-limited clock, or, because that clock undercounts
// badly, the time the writer waited for space while all it had written was in flight:
// were the congestion or the receive window smaller than the buffer, some would be
// waiting unsent.
func (h *hearing) sendBuffer(c *connection, r *round) time.Duration {
	clock := r.spent(func(s *transfer.Sample) time.Duration { return s.SendLimited })
	waited := time.Duration(0)
	if c.has(transfer.HaveProgram | transfer.HaveNotSent) {
		waited = min(c.blocked(r), scale(r.length, c.allSent(r)))
	}
	if !h.limiting(c.outstanding(r), r.bps) {
		return 0
	}
	return max(clock, waited)
}

// outstanding is the most that was queued or in flight in the round.
func (c *connection) outstanding(r *round) (most int64) {
	for i := range r.samples {
		most = max(most, r.samples[i].InFlight, r.samples[i].Queued-r.samples[i].NotSent)
	}
	return most
}

// nagle is the time in which less than a segment waited for the acknowledgement of what
// went before it, with room in every window (RFC 896 against RFC 1122 4.2.3.2).
func (h *hearing) nagle(c *connection, r *round) time.Duration {
	if c.spec.NoDelay || !c.has(transfer.HaveNotSent|transfer.HaveInFlight) {
		return 0
	}
	held := func(s *transfer.Sample) bool {
		return s.NotSent > 0 && s.NotSent < c.mss && s.InFlight > 0 && s.InFlight+s.NotSent <= s.Cwnd/2 &&
			(s.Have&transfer.HaveSendWnd == 0 || s.InFlight+s.NotSent <= s.SendWnd/2)
	}
	return scale(r.length, portion(r.samples, held))
}

// blackHole is the time after repeated timeouts in which nothing at all got through.
func (h *hearing) blackHole(c *connection, r *round) time.Duration {
	const timeouts = 2
	if !c.has(transfer.HaveRecovery|transfer.HaveAcked) || r.end.Timeouts < timeouts || r.end.Acked > r.start.Acked {
		return 0
	}
	return r.length
}

// pacing is the time in which data waited although every window had room, at the rate
// that this socket is paced to. BBR paces itself: what it aims at is the path.
func (h *hearing) pacing(c *connection, r *round) time.Duration {
	const near = 1.1
	rate := c.spec.PacingBps
	if rate == 0 && c.sender.Congestion != "bbr" && c.has(transfer.HaveRate) {
		rate = mean(r.samples, func(s *transfer.Sample) float64 { return s.PacingBps })
	}
	if rate == 0 || r.bps*near < rate {
		return 0
	}
	return scale(r.length, c.roomButWaiting(r))
}

// localQueue is the same at a rate that no pacing explains: this host's own queue takes
// no more (TCP small queues), because a shaper or its driver holds it back.
func (h *hearing) localQueue(c *connection, r *round) time.Duration {
	if c.sender.Congestion == "bbr" {
		return 0
	}
	return scale(r.length, c.roomButWaiting(r))
}

// roomButWaiting is the share of the round in which data waited unsent although the
// congestion window and the peer's had room and nothing was being repaired.
func (c *connection) roomButWaiting(r *round) float64 {
	const room = 0.8
	if !c.has(transfer.HaveNotSent | transfer.HaveInFlight | transfer.HaveCwnd) {
		return 0
	}
	return portion(r.samples, func(s *transfer.Sample) bool {
		return s.NotSent >= 2*c.mss && !s.Recovering && s.Lost == 0 && float64(s.InFlight) < room*float64(s.Cwnd) &&
			(s.Have&transfer.HaveSendWnd == 0 || float64(s.InFlight) < room*float64(s.SendWnd))
	})
}

// slowStart is a round in which the congestion window still opened exponentially and
// the rate was not yet what it became.
func (h *hearing) slowStart(c *connection, r *round) time.Duration {
	const opening = 1.25
	starting := (r.start.Ssthresh == 0 || r.start.Cwnd < r.start.Ssthresh) && r.start.Retransmitted == 0
	if !c.has(transfer.HaveCwnd) || !starting || float64(r.end.Cwnd) < opening*float64(r.start.Cwnd) || r.bps > h.path.top*0.9 {
		return 0
	}
	return r.length
}
