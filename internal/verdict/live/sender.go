package live

import (
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// saturated reports whether an end's busiest data thread has no CPU time left.
func saturated(e *transfer.End) bool { return busiestThread(e) >= threshold.SaturatedThread.Value }

// busiestThread returns the CPU time of an end's busiest data thread as a share of the wall time; 0: not known.
func busiestThread(e *transfer.End) float64 {
	if e == nil {
		return 0
	}
	return busiest(e.CPU)
}

func busiest(c *transfer.CPU) float64 {
	if c == nil {
		return 0
	}
	return c.BusiestThread
}

// smoothedRate returns the mean rate of a connection if the round's rate is within RoundScatter of it, else the
// round's rate.
func (a *analysis) smoothedRate(bps float64) float64 {
	each := a.path.meanRate / float64(len(a.connections))
	if math.Abs(bps-each) <= threshold.RoundScatter.Value*each {
		return each
	}
	return bps
}

// idle returns the time in which nothing was queued or in flight: wall time less tcp_info's busy_time.
func (c *connection) idle(r *round) time.Duration {
	if !c.has(transfer.HaveLimits) {
		return 0
	}
	return r.length - r.advance(func(s *transfer.Sample) time.Duration { return s.Busy })
}

// blocked returns the time in which the writer waited for space.
func (c *connection) blocked(r *round) time.Duration {
	return r.advance(func(s *transfer.Sample) time.Duration { return s.Blocked })
}

// paused returns the time in which the writer chose not to write.
func (c *connection) paused(r *round) time.Duration {
	return r.advance(func(s *transfer.Sample) time.Duration { return s.Paused })
}

// awaited returns the time in which the writer waited for the other program's answer.
func (c *connection) awaited(r *round) time.Duration {
	return r.advance(func(s *transfer.Sample) time.Duration { return s.Awaited })
}

// sendQueueEmpty reports whether everything that the program had written was sent. Then neither the network nor a
// window limited.
func (c *connection) sendQueueEmpty(s *transfer.Sample) bool { return s.NotSent < c.mss }

// sendQueueEmptyNoLoss reports the same outside loss recovery. During recovery the data after a hole fills the buffer.
func (c *connection) sendQueueEmptyNoLoss(s *transfer.Sample) bool {
	return c.sendQueueEmpty(s) && !s.Recovering && s.Lost == 0
}

// clockWhile returns how far one of the writer's clocks ran while a condition was true. Each sample represents half of
// the time to its neighbours.
func (c *connection) clockWhile(r *round, is func(*transfer.Sample) bool, clock func(*transfer.Sample) time.Duration) (
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

func runqueueClock(s *transfer.Sample) time.Duration { return s.RunqueueWait }

// writerRan returns the time in which the writer neither waited nor paused.
func (c *connection) writerRan(r *round) time.Duration {
	if !c.has(transfer.HaveProgram) {
		return 0
	}
	return min(r.end.At, c.sender.Last) - r.start.At - c.blocked(r) - c.paused(r) - c.awaited(r)
}

// programIdle returns the time without anything to send: idle by the kernel's clock or, for a program that writes
// often and so always has something in flight, the time in which it paused or awaited an answer while all data was
// sent. A writer that waits for buffer space is not idle.
func (c *connection) programIdle(r *round) time.Duration {
	idle := c.idle(r)
	if !c.has(transfer.HaveProgram) {
		return idle
	}
	idle = min(idle, r.length-c.blocked(r))
	chosen := func(s *transfer.Sample) time.Duration { return s.Paused + s.Awaited }
	return max(idle, c.clockWhile(r, c.sendQueueEmpty, chosen))
}

func (c *connection) sendLimited(r *round) time.Duration {
	return r.advance(func(s *transfer.Sample) time.Duration { return s.SndbufLimited })
}

// bufferEmptyTime returns the time in which the writer waited for space with nothing unsent.
func (c *connection) bufferEmptyTime(r *round) time.Duration {
	return c.clockWhile(r, c.sendQueueEmptyNoLoss, func(s *transfer.Sample) time.Duration { return s.Blocked })
}

// outstanding returns the most bytes that were queued or in flight in the round.
func (c *connection) outstanding(r *round) (most int64) {
	for i := range r.samples {
		most = max(most, r.samples[i].InFlight, r.samples[i].Queued-r.samples[i].NotSent)
	}
	return most
}

// isBelowSegment reports whether less than a segment was queued or in flight at every sample. A
// loopback's segment counts as a packet: a send buffer may be smaller.
func (c *connection) isBelowSegment() bool {
	segment := min(c.mss, int64(threshold.PacketBytes.Value))
	return c.has(transfer.HaveNotSent|transfer.HaveInFlight) &&
		portion(c.samples, func(s *transfer.Sample) bool { return max(s.InFlight+s.NotSent, s.Queued) >= segment }) == 0
}

// nagle returns the time in which less than a segment waited for the acknowledgement of the data before it, with room
// in every window (RFC 896 against RFC 1122 4.2.3.2). A program that pauses loses nothing by it. Nor does one that
// sent more since the sample before with many segments in flight, as ssh's channels do: only the odd end of its data
// waits.
func (c *connection) nagle(r *round) time.Duration {
	before := r.start
	delayed := func(s *transfer.Sample) bool {
		flows := s.Sent > before.Sent && s.InFlight > int64(threshold.NagleSegments.Value)*c.mss
		before = s
		return s.NotSent > 0 && s.NotSent < c.mss && s.InFlight > 0 && !flows && halfUsed(s, s.Cwnd) &&
			(s.Have&transfer.HaveSendWnd == 0 || halfUsed(s, s.SendWnd))
	}
	return min(scale(r.length, portion(r.samples, delayed)), r.length-c.paused(r)-c.blocked(r))
}

// respondsOften reports whether the peer sends often enough for the program to wait for its responses. A program that
// only sends loses nothing by a delayed last segment.
func (c *connection) respondsOften(minRTT time.Duration) bool {
	if !c.has(transfer.HaveReceived) {
		return true // it is not known
	}
	responses := 0.0
	for i := 1; i < len(c.samples); i++ {
		if c.samples[i].Received > c.samples[i-1].Received {
			responses++
		}
	}
	span := c.samples[len(c.samples)-1].At - c.samples[0].At
	longest := threshold.NagleResponses.Value * (2*minRTT + threshold.DelayedAck.Time()).Seconds()
	return responses > 0 && span.Seconds()/responses <= longest
}

// halfUsed says whether a window has room for as much again as is queued.
func halfUsed(s *transfer.Sample, window int64) bool {
	return float64(s.InFlight+s.NotSent) <= threshold.NagleWindow.Value*float64(window)
}
