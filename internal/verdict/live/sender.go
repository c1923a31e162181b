package live

import (
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// The rules of the sending end. Each answers how much of the round it accounts for.

func saturated(e *transfer.End) bool {
	return e != nil && e.CPU != nil && e.CPU.BusiestThread >= threshold.SaturatedThread
}

// limiting says whether a full window of so many bytes explains the round's rate: the
// link is not full, or the window over the empty path gives no more than came. A window
// that would give far more even at the round trip that was seen was not emptied by it:
// too few round trips were seen to know the queue.
func (a *analysis) limiting(window int64, bps float64) bool {
	bps = a.usual(bps)
	if a.path.wavering >= threshold.Wavering && a.path.carries(window) <= threshold.WindowLimits*bps {
		return true // a window behind a full link keeps its queue, and with it the round trip
	}
	if a.path.allows(window) <= threshold.WindowLimits*bps {
		// The round trip may tell of a longer queue than the window does: a device that lets
		// packets go in batches makes the base too long.
		return !(a.alone() && a.noGap()) && (!a.path.full() || a.path.queueing() <= threshold.WindowLimits-1)
	}
	return !a.path.full() && a.path.carries(window) <= threshold.WindowFarAbove*bps
}

// usual is the mean rate of a connection for that of a round which hardly differs: one window is not now full of
// the path, now not.
func (a *analysis) usual(bps float64) float64 {
	each := a.path.mean / float64(len(a.connections))
	if math.Abs(bps-each) <= threshold.RoundScatter*each {
		return each
	}
	return bps
}

// idle is the time in which nothing was queued or outstanding (tcp_info's busy_time
// taken from wall time).
func (c *connection) idle(r *round) time.Duration {
	if !c.has(transfer.HaveLimits) {
		return 0
	}
	return r.length - r.advance(func(s *transfer.Sample) time.Duration { return s.Busy })
}

// blocked and paused are what the writer knows of itself.
func (c *connection) blocked(r *round) time.Duration {
	return r.advance(func(s *transfer.Sample) time.Duration { return s.Blocked })
}

func (c *connection) paused(r *round) time.Duration {
	return r.advance(func(s *transfer.Sample) time.Duration { return s.Paused })
}

// awaited is the time the writer waited for the other program's answer.
func (c *connection) awaited(r *round) time.Duration {
	return r.advance(func(s *transfer.Sample) time.Duration { return s.Awaited })
}

// allSent says whether everything the program had written was on its way: then neither
// the network nor a window held anything back, and what the program did meanwhile
// decides.
func (c *connection) allSent(s *transfer.Sample) bool { return s.NotSent < c.mss }

// allSentNoHole says the same, where no hole is being repaired: what comes after a hole fills
// the buffer, which is the loss's doing.
func (c *connection) allSentNoHole(s *transfer.Sample) bool {
	return c.allSent(s) && !s.Recovering && s.Lost == 0
}

// ranWhile is how far one of the writer's clocks ran while something was so: each sample
// speaks for half of the time to its neighbours.
func (c *connection) ranWhile(r *round, is func(*transfer.Sample) bool, clock func(*transfer.Sample) time.Duration) (
	sum time.Duration) {
	if !c.has(transfer.HaveProgram | transfer.HaveNotSent) {
		return 0
	}
	before := r.start
	for i := range r.samples {
		s := &r.samples[i]
		ran := min(max(clock(s)-clock(before), 0), s.At-before.At)
		for _, end := range []*transfer.Sample{before, s} {
			if is(end) {
				sum += ran / 2
			}
		}
		before = s
	}
	return sum
}

// senderCPU is the time the writer neither waited nor paused, where that is most of its
// time: it ran, or it waited for a core.
func (a *analysis) senderCPU(c *connection, r *round) time.Duration {
	if !saturated(a.sender) && c.running < threshold.SaturatedThread {
		return c.runDelayIdle(r)
	}
	return c.ran(r)
}

// runDelayIdle is the time the writer was ready but had no core while all it had written
// was sent, if that is much over the whole transfer.
func (c *connection) runDelayIdle(r *round) time.Duration {
	if c.runDelay < threshold.RunDelay {
		return 0
	}
	return c.ranWhile(r, c.allSent, runDelayClock)
}

func runDelayClock(s *transfer.Sample) time.Duration { return s.RunDelay }

// ran is the time in which the writer was at it, waiting for nothing.
func (c *connection) ran(r *round) time.Duration {
	if !c.has(transfer.HaveProgram) {
		return 0
	}
	return min(r.end.At, c.sender.Last) - r.start.At - c.blocked(r) - c.paused(r) - c.awaited(r)
}

// application is the time without anything to send: idle by the kernel's clock, or, for
// a program that writes little and often and so always has something outstanding, the
// time it chose not to write, or waited for an answer, while all it had written was
// sent. A writer that waits for the kernel's space or by its own buffering rule is not
// idle.
func (a *analysis) application(c *connection, r *round) time.Duration {
	idle := c.idle(r)
	if !c.has(transfer.HaveProgram) {
		return idle
	}
	idle = min(idle, r.length-c.blocked(r))
	return max(idle, c.ranWhile(r, c.allSent, func(s *transfer.Sample) time.Duration { return s.Paused + s.Awaited }))
}

// sendBuffer is the kernel's sndbuf-limited clock, or, because that clock undercounts
// badly, the time the writer waited for space while all it had written was in flight:
// were the congestion or the receive window smaller than the buffer, some would be
// waiting unsent. A buffer that runs dry that often holds back the rest of the time too:
// it is refilled in bursts, and the kernel does not open a congestion window that is not
// used (RFC 7661).
func (a *analysis) sendBuffer(c *connection, r *round) time.Duration {
	if a.path.full() && (a.path.evenness > 0 || a.path.level() >= threshold.ClearlyFlat) {
		if a.path.allows(c.outstanding(r)) > threshold.WindowLimits*r.bps {
			return 0
		}
	} else if c.bufferEmpty >= threshold.BufferEmpty {
		return r.length
	}
	return max(c.sendLimited(r), c.bufferEmptyTime(r))
}

func (c *connection) sendLimited(r *round) time.Duration {
	return r.advance(func(s *transfer.Sample) time.Duration { return s.SendLimited })
}

// bufferEmptyTime is the time the writer waited for space with nothing left unsent.
func (c *connection) bufferEmptyTime(r *round) time.Duration {
	return c.ranWhile(r, c.allSentNoHole, func(s *transfer.Sample) time.Duration { return s.Blocked })
}

// outstanding is the most that was queued or in flight in the round.
func (c *connection) outstanding(r *round) (most int64) {
	for i := range r.samples {
		most = max(most, r.samples[i].InFlight, r.samples[i].Queued-r.samples[i].NotSent)
	}
	return most
}

// nagle is the time in which less than a segment waited for the acknowledgement of what
// went before it, with room in every window (RFC 896 against RFC 1122 4.2.3.2). A
// program that does not want to write yet loses nothing by it, as one that paces itself. Nor does one
// that sent more since the sample before, with much under way: the odd end of what it wrote waits, and the
// rest does not wait for it, as in ssh's channels.
func (a *analysis) nagle(c *connection, r *round) time.Duration {
	if c.spec.NoDelay || c.outside && !c.answered || !c.has(transfer.HaveNotSent|transfer.HaveInFlight) {
		return 0
	}
	before := r.start
	held := func(s *transfer.Sample) bool {
		flows := s.Sent > before.Sent && s.InFlight > threshold.NagleSegments*c.mss
		before = s
		return s.NotSent > 0 && s.NotSent < c.mss && s.InFlight > 0 && !flows && halfUsed(s, s.Cwnd) &&
			(s.Have&transfer.HaveSendWnd == 0 || halfUsed(s, s.SendWnd))
	}
	return min(scale(r.length, portion(r.samples, held)), r.length-c.paused(r)-c.blocked(r))
}

// isAnswered says whether the other end sends often enough for the program to wait for its
// answers. A program that only sends loses nothing by what is held back.
func (c *connection) isAnswered(minRTT time.Duration) bool {
	if !c.has(transfer.HaveReceived) {
		return true // it is not known
	}
	answers := 0.0
	for i := 1; i < len(c.samples); i++ {
		if c.samples[i].Received > c.samples[i-1].Received {
			answers++
		}
	}
	span := c.samples[len(c.samples)-1].At - c.samples[0].At
	return answers > 0 && span.Seconds()/answers <= threshold.NagleAnswers*(2*minRTT+threshold.DelayedAck).Seconds()
}

// halfUsed says whether a window has room for as much again as is queued.
func halfUsed(s *transfer.Sample, window int64) bool {
	return float64(s.InFlight+s.NotSent) <= threshold.NagleWindow*float64(window)
}

// blackHole is the time after repeated timeouts in which nothing at all got through.
func (a *analysis) blackHole(c *connection, r *round) time.Duration {
	if !c.has(transfer.HaveRecovery|transfer.HaveAcked) || r.end.Timeouts < threshold.BlackHoleTimeouts ||
		r.end.Acked > r.start.Acked {
		return 0
	}
	return r.length
}

// slowStart is the time until the connection had slowStartEnd its congestion window.
func (a *analysis) slowStart(c *connection, r *round) time.Duration {
	return min(c.startedAt, r.end.At) - r.start.At
}
