package live

import (
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// paced says whether the congestion control paces what it sends by what it believes of
// the path.
func (c *connection) paced() bool { return strings.HasPrefix(c.sender.Congestion, "bbr") }

// pacing is the time in which data waited although every window had room, at the rate
// that this socket was told to keep to, or, where the congestion control does not pace,
// is seen to be paced to.
func (a *analysis) pacing(c *connection, r *round) time.Duration {
	at := func(rate float64) bool {
		return rate > 0 && rate <= threshold.PacedNear*max(r.bps, a.path.mean/float64(len(a.connections)))
	}
	switch {
	case at(c.spec.PacingBps):
		return scale(r.length, portion(r.samples, func(s *transfer.Sample) bool {
			return c.waits(s,
				threshold.OpenSteadyWindow)
		}))
	case c.paced() || !at(mean(r.samples, func(s *transfer.Sample) float64 { return s.PacingBps })):
		return 0
	}
	return scale(r.length, a.localQueueShare(c, r))
}

// localQueue is the same at a rate that no pacing explains: this host's own queue takes
// no more (TCP small queues), because a shaper or its driver holds it back.
func (a *analysis) localQueue(c *connection, r *round) time.Duration {
	return scale(r.length, a.localQueueShare(c, r))
}

// localQueueShare is the share of the round in which data waited unsent although the
// congestion window and the peer's had room. Where that is often so and nothing gets
// lost, it is so in the samples between too: a host that stands still for a moment
// fills the congestion window once.
func (a *analysis) localQueueShare(c *connection, r *round) float64 {
	switch {
	case c.bufferEmpty >= threshold.BufferEmpty: // all that the buffer takes is sent, again and again
		return 0
	case c.unsent >= threshold.UnsentOften && a.path.resent <= threshold.Losing && r.start.At >= c.startedAt:
		return 1
	case c.paced() && c.unsent < threshold.UnsentOften: // its usual probing
		return 0
	}
	return c.unsentShare(r)
}

// waits says whether more waited unsent than the sender gathers, although less than a share
// used of the congestion window was in flight, with ample room in the peer's, and nothing was
// being repaired.
func (c *connection) waits(s *transfer.Sample, used float64) bool {
	gathered := max(2*c.mss, int64(threshold.Deferred*float64(s.InFlight)))
	return s.NotSent >= gathered && !s.Recovering && s.Lost == 0 && float64(s.InFlight) < used*float64(s.Cwnd) &&
		(s.Have&transfer.HaveSendWnd == 0 || float64(s.InFlight) < threshold.OpenWindow*float64(s.SendWnd))
}

// windowMostlyOpen says, of a kernel that does not tell the peer's window (before 5.4), that
// by its clock the window did not hold data back for most of the round. Without that clock
// (before 4.10) nobody knows.
func (c *connection) windowMostlyOpen(r *round) bool {
	return c.has(transfer.HaveLimits) && float64(c.windowLimited(r)) < threshold.MostlyWaiting*float64(r.length)
}

// unsentShare is the share of the round by the samples alone. A congestion window that is
// not used does not grow, which tells one with a little room from one whose last
// segments wait to be sent together. BBR leaves room on purpose and is paced instead:
// it has room while it may send faster than it does, as when it probes, which a local
// queue keeps it from ending.
func (c *connection) unsentShare(r *round) float64 {
	if !c.has(transfer.HaveNotSent | transfer.HaveInFlight | transfer.HaveCwnd) {
		return 0
	}
	if !c.has(transfer.HaveSendWnd) && !c.windowMostlyOpen(r) {
		return 0
	}
	used := threshold.OpenWindow
	if r.end.Cwnd == r.start.Cwnd {
		used = threshold.OpenSteadyWindow
	}
	return portion(r.samples, func(s *transfer.Sample) bool {
		return c.waits(s, used) && (!c.paced() || s.PacingBps >= threshold.BBRProbing*r.bps)
	})
}
