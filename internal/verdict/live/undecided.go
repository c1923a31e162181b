package live

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// windowOf is the window or buffer that an open question is about; the other answer is a full link.
var windowOf = map[verdict.Code]verdict.Name{verdict.WindowOrLink: verdict.ReceiverWindow,
	verdict.WindowHoldsPath: verdict.ReceiverWindow, verdict.SendBufferHoldsPath: verdict.SendBuffer,
	verdict.BetweenClosings: verdict.ReceiverApplication}

// mostlyOpen is the question that most of what is unknown comes down to; "" where there is none.
func (a *analysis) mostlyOpen() (most verdict.Code) {
	sum := time.Duration(0)
	for code := range windowOf {
		sum += a.open[code]
		if a.open[code] > a.open[most] {
			most = code
		}
	}
	if 2*sum <= a.time[verdict.Unknown] {
		return ""
	}
	return most
}

// mayBeLink says that the peer's window was full, that a queue stands in the path all
// the same, and that neither can be told from the other: a device that lets packets go in
// batches (Wi-Fi, DOCSIS) makes a full link look like windows that come in bursts, and a program that
// reads slowly makes a closing window look like a full link: its host acknowledges as it reads.
func (a *analysis) mayBeLink(c *connection, r *round) bool {
	return (a.path.fullInBatches() || a.path.full() && a.acknowledgedAsRead(c)) &&
		a.path.allows(c.window(r)) > threshold.WindowLimits*a.usual(r.bps)
}

// acknowledgedAsRead says that the peer's window was full, that each acknowledgement tells of several
// segments, and that what the round trip grew by may be what they waited for each other and for it.
func (a *analysis) acknowledgedAsRead(c *connection) bool {
	each := c.acknowledges(a.path)
	if a.receiver != nil || c.windowFull < threshold.MostlyWaiting || each < threshold.ReadAtOnce {
		return false
	}
	grew := (a.path.rtt - a.path.base).Seconds()
	return grew <= threshold.WaitsForReads*each*float64(c.mss)*8*float64(len(a.connections))/a.path.mean
}

// windowOrLink is the time in which it was so.
func (a *analysis) windowOrLink(c *connection, r *round) time.Duration {
	if c.unread(r) || !a.mayBeLink(c, r) {
		return 0
	}
	return c.windowLimited(r)
}

// justHolds says that a window which was full, and what the path holds, are the same as far as can be
// told: over the empty path the window allows no tenth more than came, so that a faster link gains
// none, and data arrives without a break, so that a larger window finds none to fill. Without a
// queue the former may be off by as much again.
func (a *analysis) justHolds(window int64, bps float64) bool {
	most := threshold.WindowLimits
	if a.path.full() {
		most = threshold.CauseFactor
	}
	return a.alone() && a.noGap() && a.path.allows(window) <= most*a.usual(bps)
}

// noGap says that data arrives without a break, so that a larger window finds hardly a gap
// to fill. A sender that paces to the rate that comes (BBR) makes it look so at any rate. Where a round trip
// has few segments their own time on the link tells, unless breaks are seen all the same.
func (a *analysis) noGap() bool {
	p := a.path
	switch told := p.evenness > 0 && !a.paces(); {
	case p.byRates || p.spare >= threshold.LinkFree:
		return false
	case told:
		return p.evenness >= threshold.FlatRate
	}
	return p.spare > 0 && !a.gaps()
}

// paces says that the sender paces to the rate that comes.
func (a *analysis) paces() bool {
	c := a.connections[0]
	pacing := mean(c.samples, func(s *transfer.Sample) float64 { return s.PacingBps })
	return (c.paced() || c.spec.PacingBps > 0) && pacing < threshold.PacedFaster*a.path.mean/float64(len(a.connections))
}

// gaps says that data is seen to arrive with breaks, which a larger window would fill, or that the link gives
// more than comes. Where samples lie too far apart for round trips, or several connections fill each other's
// gaps, it is not known.
func (a *analysis) gaps() bool {
	p := a.path
	even := a.path.evenness
	if even == 0 {
		even = p.coarse
	}
	return !p.byRates && (even > 0 && even < threshold.ClearlyUneven || p.ripple >= threshold.RippleOfGaps) ||
		p.spare >= threshold.LinkClearlyFree
}

// alone says that no other connection of the transfer fills the gaps.
func (a *analysis) alone() bool { return len(a.connections) == 1 }

// windowHolds is the time in which the peer's window was full and just holds the path.
func (a *analysis) windowHolds(c *connection, r *round) time.Duration {
	if c.unread(r) || !a.justHolds(c.window(r), r.bps) {
		return 0
	}
	return a.heldByWindow(c, r)
}

// sendBufferHolds is the same of the sender's buffer.
func (a *analysis) sendBufferHolds(c *connection, r *round) time.Duration {
	if !a.justHolds(c.outstanding(r), r.bps) {
		return 0
	}
	return a.sendBuffer(c, r)
}

// openBetweenClosings leaves open what the congestion window is said to hold back between two closings of the
// peer's window, where the sender alone was seen. A program that reads at its own rate shuts the window for the
// less time the slower it is filled, and the kernel opens no congestion window that is not used (RFC 7661, 4.4):
// without the losses that such bursts suffer no more might come.
func (a *analysis) openBetweenClosings() {
	name := a.network.name
	if a.receiver != nil || a.network.subtype != "" || name != verdict.Congestion && name != verdict.SlowStart ||
		ratio(a.time[verdict.ReceiverApplication], a.total) < threshold.ClosesOften {
		return
	}
	open := a.time[name]
	if name == verdict.SlowStart {
		open -= a.startup
	}
	a.time[name] -= open
	a.time[verdict.Unknown] += open
	a.open[verdict.BetweenClosings] += open
}

// candidates are what the question leaves open. A sender cannot tell a small window from one that is not read from.
func (a *analysis) candidates(code verdict.Code) []verdict.Name {
	if code == verdict.WindowOrLink && a.receiver == nil {
		return []verdict.Name{verdict.ReceiverWindow, verdict.ReceiverApplication, verdict.Bottleneck}
	}
	if code == verdict.BetweenClosings {
		return []verdict.Name{verdict.ReceiverApplication, a.network.name}
	}
	return []verdict.Name{windowOf[code], verdict.Bottleneck}
}

func (a *analysis) tellUnknown(took verdict.Values) (verdict.Code, verdict.Values) {
	code := a.mostlyOpen()
	if code == "" {
		return verdict.KernelSilent, took
	}
	if code == verdict.BetweenClosings {
		took["closed_ratio"] = ratio(a.time[verdict.ReceiverApplication], a.total)
		took["steady_bps"] = a.path.mean
		took["retransmitted_ratio"] = a.path.resent
		return code, took
	}
	size := a.typical((*connection).window)
	if windowOf[code] == verdict.SendBuffer {
		size = a.typical((*connection).outstanding)
	}
	took["allows_bps"] = a.path.allows(size)
	took["window_bytes"] = float64(size)
	took["steady_bps"] = a.path.mean
	took["rtt_s"] = a.path.rtt.Seconds()
	took["rtt_base_s"] = a.path.base.Seconds()
	if c := a.connections[0]; code == verdict.WindowOrLink && a.acknowledgedAsRead(c) {
		took["ack_segments"] = c.acknowledges(a.path)
	}
	if code != verdict.WindowOrLink && a.path.evenness > 0 {
		took["even_ratio"] = a.path.evenness
	}
	return code, took
}
