package limiter

import (
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// paced says whether the congestion control paces what it sends by what it believes of
// the path.
func (c *connection) paced() bool { return strings.HasPrefix(c.sender.Congestion, "bbr") }

// pacing is the time in which data waited although every window had room, at the rate
// that this socket was told to keep to, or, where the congestion control does not pace,
// is seen to be paced to.
func (h *hearing) pacing(c *connection, r *round) time.Duration {
	const near = 1.1
	at := func(rate float64) bool {
		return rate > 0 && rate <= near*max(r.bps, h.path.mean/float64(len(h.connections)))
	}
	switch {
	case at(c.spec.PacingBps):
		return scale(r.length, portion(r.samples, func(s *transfer.Sample) bool { return c.waits(s, littleRoom) }))
	case c.paced() || !at(mean(r.samples, func(s *transfer.Sample) float64 { return s.PacingBps })):
		return 0
	}
	return scale(r.length, h.roomButWaiting(c, r))
}

// localQueue is the same at a rate that no pacing explains: this host's own queue takes
// no more (TCP small queues), because a shaper or its driver holds it back.
func (h *hearing) localQueue(c *connection, r *round) time.Duration {
	return scale(r.length, h.roomButWaiting(c, r))
}

// roomButWaiting is the share of the round in which data waited unsent although the
// congestion window and the peer's had room. Where that is often so and nothing gets
// lost, it is so in the samples between too: a host that stands still for a moment
// fills the congestion window once.
func (h *hearing) roomButWaiting(c *connection, r *round) float64 {
	const often = 0.3
	switch {
	case c.roomy >= often && h.path.resent <= losing && r.start.At >= c.startedAt:
		return 1
	case c.paced() && c.roomy < often: // its usual probing
		return 0
	}
	return c.hasRoom(r)
}

// In flight below these shares of the windows leaves room in them.
const (
	ampleRoom  = 0.8
	littleRoom = 0.93
)

// waits says whether data waited unsent although less than a share used of the congestion
// window was in flight, with ample room in the peer's, and nothing was being repaired.
func (c *connection) waits(s *transfer.Sample, used float64) bool {
	return s.NotSent >= 2*c.mss && !s.Recovering && s.Lost == 0 && float64(s.InFlight) < used*float64(s.Cwnd) &&
		(s.Have&transfer.HaveSendWnd == 0 || float64(s.InFlight) < ampleRoom*float64(s.SendWnd))
}

// hasRoom is the share of the round by the samples alone. A congestion window that is
// not used does not grow, which tells one with a little room from one whose last
// segments wait to be sent together. BBR leaves room on purpose and is paced instead:
// it has room while it may send faster than it does, as when it probes, which a local
// queue keeps it from ending.
func (c *connection) hasRoom(r *round) float64 {
	const probing = 1.12
	if !c.has(transfer.HaveNotSent | transfer.HaveInFlight | transfer.HaveCwnd) {
		return 0
	}
	used := ampleRoom
	if r.end.Cwnd == r.start.Cwnd {
		used = littleRoom
	}
	return portion(r.samples, func(s *transfer.Sample) bool {
		return c.waits(s, used) && (!c.paced() || s.PacingBps >= probing*r.bps)
	})
}
