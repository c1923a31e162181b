package live

import (
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// isModelPaced reports whether the congestion control paces by its model of the path.
func (c *connection) isModelPaced() bool { return strings.HasPrefix(c.sender.Congestion, "bbr") }

// dataWaits reports whether more than the sender gathers waited unsent, although less than the share used of the
// congestion window was in flight, with ample room in the receive window, for a segment at least, and outside loss
// recovery.
func (c *connection) dataWaits(s *transfer.Sample, used float64) bool {
	gathered := max(2*c.mss, int64(threshold.Deferred.Value*float64(s.InFlight)))
	return s.NotSent >= gathered && !s.Recovering && s.Lost == 0 && float64(s.InFlight) < used*float64(s.Cwnd) &&
		(s.Have&transfer.HaveSendWnd == 0 ||
			float64(s.InFlight) < threshold.OpenWindow.Value*float64(s.SendWnd) && s.SendWnd-s.InFlight >= c.mss)
}

// windowMostlyOpen reports, for a kernel that does not report the receive window (before 5.4), whether the rwnd-
// limited clock (4.10) ran for less than half of the round.
func (c *connection) windowMostlyOpen(r *round) bool {
	return c.has(transfer.HaveLimits) && float64(c.windowLimited(r)) < threshold.MostlyWaiting.Value*float64(r.length)
}

// unsentShare returns the share of the round in which data waited, by samples. An unused congestion window does not
// grow, unlike one with its last segments waiting to be sent together. BBR leaves room on purpose: it counts only while
// it may send faster than it does, as when it probes.
func (c *connection) unsentShare(r *round) float64 {
	if !c.has(transfer.HaveNotSent | transfer.HaveInFlight | transfer.HaveCwnd) {
		return 0
	}
	if !c.has(transfer.HaveSendWnd) && !c.windowMostlyOpen(r) {
		return 0
	}
	used := threshold.OpenWindow.Value
	if r.end.Cwnd == r.start.Cwnd {
		used = threshold.OpenSteadyWindow.Value
	}
	return portion(r.samples, func(s *transfer.Sample) bool {
		return c.dataWaits(s, used) && (!c.isModelPaced() || s.PacingBps >= threshold.BBRProbing.Value*r.bps)
	})
}
