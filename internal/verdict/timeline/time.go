package timeline

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// queued reports whether a queue was in the path: round trips above that of the empty path by more than they scatter
// within a round.
func (t *timeline) queued(s *flow.Slice) bool {
	if t.baseRTT == 0 || s.OutMax < int64(threshold.QueueSegments.Value)*int64(t.d.MSS) {
		return false
	}
	if s.RTTs == 0 { // repetitions time nothing
		return t.byLittle(s)
	}
	excess := float64(s.RTTSum)/float64(s.RTTs)/1e9 - t.baseRTT
	packets := int(threshold.SerialisedPackets.Value)
	if t.even { // no packet waits for others of its own burst
		packets = 1
	}
	serialised := float64(packets) * float64(t.d.MSS) / max(t.pathPace, t.capacity, 1)
	return excess > max(threshold.StandingQueue.Value*t.baseRTT, threshold.QueueLeast.Time().Seconds(), serialised) &&
		excess > threshold.QueueSpreads.Value*s.RTTSpread()/1e9
}

// lineQueued reports whether a queue was in front of the line. Round trips do not show one where the arrivals show that
// the line had no data in much of the time: then the receiver waited, or its acknowledgements did.
func (t *timeline) lineQueued(s *flow.Slice) bool { return t.queued(s) && !t.lineIdles() }

// byLittle reports whether so much was outstanding at such a rate that each byte was on its way for
// several times the empty path's round trip (Little's law), while the path gave its best:
// the rest it waited in a queue.
func (t *timeline) byLittle(s *flow.Slice) bool {
	rate := t.rate(s)
	return t.losing && t.d.Timeouts == 0 && rate > 0 && t.full(s) &&
		s.OutMean()/rate > threshold.LittleQueue.Value*t.baseRTT
}

// standing says by Little's law that what was outstanding waited for several of the empty
// path's round trips: more of it would only wait longer, so that no congestion window that
// opens limits, though the tap does not show on which way it waits.
func (t *timeline) standing(s *flow.Slice) bool {
	rate := t.rate(s)
	begun := float64(s.Start-t.d.First) / 1e9
	return !t.losing && t.baseRTT > 0 && begun > threshold.OpenTrips.Value*t.baseRTT && rate > 0 &&
		s.OutMean() > threshold.LittleQueue.Value*(t.baseRTT*rate+float64(t.d.MaxSegment)) &&
		s.OutMax >= int64(threshold.ProbeSegments.Value)*int64(max(t.d.MSS, 536))
}

// ackQueued reports whether acknowledgements on their way back made the queue: by their timestamps they waited for
// most of the excess of the round trips.
//
// At the receiver they had not gone far, and their timestamps show no queue.
func (t *timeline) ackQueued(s *flow.Slice) bool {
	if t.vantage == AtReceiver || s.Backs == 0 || !t.queued(s) {
		return false
	}
	back := float64(s.BackSum) / float64(s.Backs) / 1e9
	return back > threshold.AckQueueTick.Time().Seconds() &&
		back > threshold.AckQueue.Value*(float64(s.RTTSum)/float64(s.RTTs)/1e9-t.baseRTT)
}

// neverEmpty reports whether even the least round trip of the slice exceeded that of the empty path by as much again,
// and by more than a few packets of its own. The link behind that queue was never idle, with data of any connection. A
// few round trips may all contain a delayed-ACK timer.
func (t *timeline) neverEmpty(s *flow.Slice) bool {
	own := threshold.QueueSegments.Value * float64(t.d.MSS) / max(t.pathPace, t.capacity, 1)
	return float64(s.RTTs) >= threshold.NeverEmptyRTTs.Value && t.baseRTT > 0 &&
		float64(s.RTTMin)/1e9-t.baseRTT > max(t.baseRTT, own)
}

// full reports whether the slice's rate is the best there is: as fast as the path delivers what
// is outstanding at once, or, where that was never seen, as the best of the transfer.
func (t *timeline) full(s *flow.Slice) bool {
	return t.parallelFactor*t.rate(s) >= threshold.FullSlice.Value*max(t.pathPace, t.capacity)
}

// judgeNetwork finds the limiter of each slice while the sender had data in flight and no window was full.
func (t *timeline) judgeNetwork() {
	t.networkLimiter = make([]verdict.Name, len(t.d.Slices))
	for i := range t.d.Slices {
		t.networkLimiter[i] = t.networkOf(i)
	}
}

func (t *timeline) networkOf(i int) verdict.Name {
	s := &t.d.Slices[i]
	switch {
	case t.spaced(i), t.waitsForTimer(s):
		return verdict.Sender
	case t.unclear:
		return verdict.Unknown
	case t.belowSegment:
		return verdict.Application
	case t.ackQueued(s):
		return verdict.AckPath
	case t.lineQueued(s) && t.full(s):
		return verdict.Bottleneck
	case t.stopAndWait(s):
		return verdict.Application
	case t.linkIsFull && t.parallelFactor*t.rate(s) > threshold.FullSliceFilled.Value*t.pathPace:
		return verdict.Bottleneck
	case t.losing && t.neverEmpty(s):
		return verdict.Bottleneck
	case (t.losing || t.marked) && t.recovering[i] && !t.repaired(s):
		return t.lossOf(s)
	case t.policed && t.full(s): // a sender that paces by its model of the path does not slow down after losses
		return t.lossOf(s)
	case t.full(s) && t.sentFaster:
		return verdict.Bottleneck
	case t.isShort && !t.losing:
		return t.openingOf(i)
	case s.RTTs == 0 && s.Sent == 0:
		return verdict.Unknown
	case s.WindowMax == 0 || !t.d.ScaleKnown && s.OutMax*2 > s.WindowMax:
		return verdict.Unknown
	}
	if t.pauses(i) {
		return t.idleOf(i)
	}
	if i < t.openingSlices {
		return t.openingOf(i)
	}
	if t.vantage != AtSender && !t.inBursts && t.full(s) && t.standing(s) {
		t.waitedTime += sliceTime(s)
		return verdict.Unknown
	}
	if t.blind() && !t.inBursts && t.full(s) && s.OutMax >= int64(threshold.QueueSegments.Value)*int64(t.d.MSS) {
		t.unseenQueueTime += sliceTime(s)
		return verdict.Unknown
	}
	if t.timerInTrips() {
		return verdict.Unknown
	}
	return verdict.Sender
}

// blind reports whether a queue in front of the link would not be seen: it is between the tap and the sender, and no
// timestamps follow that part. Data that come evenly are then those of a full link, or of a sender that limits
// itself.
func (t *timeline) blind() bool { return t.vantage != AtSender && !t.d.LoopFollowed }

// growing reports whether what was outstanding had no level yet: a limit of the sender's own does
// not rise.
func (t *timeline) growing() bool {
	part := len(t.d.Slices) / 3
	if part == 0 || t.length > threshold.SlowStartTrips.Value*t.baseRTT {
		return false
	}
	var middle, last float64
	for i := range part {
		middle += t.d.Slices[part+i].OutMean()
		last += t.d.Slices[len(t.d.Slices)-1-i].OutMean()
	}
	return last > threshold.StillOpening.Value*middle
}

// spaced reports whether a sender sends data in pieces, of its own accord, and has nothing outstanding between them
// for a tenth of the time and more. A piece then waits in the path only for itself.
func (t *timeline) spaced(i int) bool { return t.pauses(i) && t.idleOf(i) == verdict.Sender }

// waitsForTimer reports whether the sender waited for delayed acknowledgements, block by block: the path is
// idle meanwhile.
func (t *timeline) waitsForTimer(s *flow.Slice) bool {
	return t.blockwise && float64(s.Clock[flow.AckTimer]) > threshold.PausingShare.Value*float64(s.End-s.Start)
}

// pauses reports whether nothing was outstanding for a tenth of this slice and more, and of the
// whole transfer.
func (t *timeline) pauses(i int) bool {
	s := &t.d.Slices[i]
	return t.pausing && !t.losing && float64(s.Clock[flow.Idle]) > threshold.PausingShare.Value*float64(s.End-s.Start)
}

// stopAndWait reports whether the sender waited for an answer before it sent more: a little
// data a round, and data coming back.
func (t *timeline) stopAndWait(s *flow.Slice) bool {
	return int(t.d.Answered)*2 >= t.rounds && t.rounds > 2 && s.OutMax*4 <= s.WindowMax && !t.losing
}

// linkFull reports whether the whole transfer ran within a tenth of what the path delivers, with
// a queue or probing to show that more was tried: nothing but the link limits then.
func (t *timeline) linkFull() bool {
	if t.lineIdles() || t.pathPace == 0 ||
		t.parallelFactor*max(t.goodput, quantileOf(t, 0.5)) < t.pathPace/threshold.FilledWithin.Value {
		return false
	}
	if t.losing { // faster sending comes out no faster of a policer either
		return t.queueing || t.queueSeen()
	}
	return t.queueing || t.sentFaster
}

// queueSeen reports whether round trips rose by a few packets' worth now and then, as they do
// before a shallow queue overflows, but not before a policer drops.
func (t *timeline) queueSeen() bool {
	rises := make([]weighted, 0, len(t.d.Slices))
	for i := range t.d.Slices {
		if s := &t.d.Slices[i]; s.RTTs > 0 {
			rises = append(rises, weighted{float64(s.RTTMax)/1e9 - t.baseRTT, sliceTime(s)})
		}
	}
	return quantile(rises, threshold.QueueSeenOften.Value) > threshold.QueueBeforeLoss.Value*float64(t.d.MSS)/t.pathPace
}

// short reports whether the transfer was over before the congestion window had opened.
func (t *timeline) short() bool {
	grew := 0.0
	for i := range t.d.Slices {
		grew += float64(t.d.Slices[i].Clock[flow.SlowStart]) / 1e9
	}
	return grew > 0 && grew > threshold.HeadlineShare.Value*(t.length-threshold.ShortTail.Value*t.baseRTT)
}

// quantileOf is a quantile over time of the slices' rates, bytes/s.
func quantileOf(t *timeline, q float64) float64 {
	rates := make([]weighted, 0, len(t.d.Slices))
	for i := range t.d.Slices {
		s := &t.d.Slices[i]
		rates = append(rates, weighted{t.rate(s), sliceTime(s)})
	}
	return quantile(rates, q)
}

// attribute gives a slice's time away, in seconds, to what is empty.
func (t *timeline) attribute(i int, to *attributed) {
	s := &t.d.Slices[i]
	add := func(n verdict.Name, clock flow.Clock) {
		if n == verdict.Congestion && t.oversized() {
			n = verdict.MTUBlackHole
		}
		if s.Clock[clock] > 0 {
			to.add(n, float64(s.Clock[clock])/1e9)
		}
	}
	if s.Unseen > 0 && float64(s.Unseen) > threshold.UnreliableSlice.Value*float64(s.Sent) {
		to.add(verdict.Unknown, sliceTime(s))
		return
	}
	add(t.idleOf(i), flow.Idle)
	add(verdict.NagleDelayedAck, flow.NagleWait)
	switch {
	case !t.blockwise:
		add(t.networkLimiter[i], flow.AckTimer)
	case t.scaleMismatch(): // a window in its own unit has room for two segments, which need no timer
		add(verdict.ReceiverWindow, flow.AckTimer)
	default:
		add(verdict.NagleDelayedAck, flow.AckTimer)
	}
	add(verdict.MTUBlackHole, flow.BlackHole)
	add(t.slowStartOf(i), flow.SlowStart)
	add(t.closedOf(), flow.Closed)
	add(t.windowOf(s), flow.Full)
	add(t.recoveryOf(s), flow.Recovery)
	add(t.networkLimiter[i], flow.Busy)
	add(t.appLimitedOf(i), flow.AppLimited)
}

// slowStartOf is what limited while the outstanding data multiplied: the beginning of a
// transfer or of what follows a pause, but after a timeout the loss before it (RFC 5681,
// 3.1: the loss window), and the link where it was full already and only its queue grew.
func (t *timeline) slowStartOf(i int) verdict.Name {
	if t.belowSegment {
		return verdict.Application
	}
	if s := &t.d.Slices[i]; t.neverEmpty(s) && !t.ackQueued(s) {
		return verdict.Bottleneck
	}
	if t.losing && t.d.Timeouts > 0 && slices.ContainsFunc(t.d.Slices[:i],
		func(s flow.Slice) bool { return s.Losses > 0 }) {
		return verdict.Congestion
	}
	return t.openingOf(i)
}

// openingOf is what limited while a window opened: the window, unless what was outstanding
// only waited longer.
func (t *timeline) openingOf(i int) verdict.Name {
	s := &t.d.Slices[i]
	switch {
	case t.caughtUp(s):
		return verdict.Sender
	case !t.standing(s) && t.avoiding && i < t.openingSlices:
		return verdict.Congestion
	case !t.standing(s):
		return verdict.SlowStart
	case t.ackQueued(s):
		return verdict.AckPath
	}
	t.waitedTime += sliceTime(s)
	return verdict.Unknown
}

// idleOf returns the limiter while nothing was outstanding: the program, if the data before was less than a full
// segment, so all that there was, or if the pauses are long. Else a paced or shaped sender may have sent segments one
// by one.
func (t *timeline) idleOf(i int) verdict.Name {
	if t.serialised && t.spacedByLine() { // the line delivers what the sender sent at once
		return verdict.Bottleneck
	}
	if t.losing && t.vantage != AtSender {
		return t.idleElsewhere()
	}
	if t.d.Tails*2 >= t.d.Pauses || t.clock(flow.Idle) >= threshold.LongPause.Time().Seconds()*float64(t.d.Pauses) {
		return verdict.Application
	}
	if t.arrivesEven { // a line before the tap spaces the segments
		return verdict.Bottleneck
	}
	return verdict.Sender
}

// idleElsewhere is idleOf where a segment that was lost before the tap leaves the same silence as a program that has
// nothing to send. The end of a write was all that there was, unless the silences double as timeouts do.
func (t *timeline) idleElsewhere() verdict.Name {
	if float64(t.d.PushedIdle) >= threshold.PushedIdle.Value*t.clock(flow.Idle)*1e9 &&
		float64(t.d.BackOffs) < threshold.BackingOff.Value*float64(t.d.Pauses) {
		return verdict.Application
	}
	return verdict.Unknown
}

// appLimitedOf is what limited while the sender had far less outstanding than before: itself, unless marks explain it.
func (t *timeline) appLimitedOf(i int) verdict.Name {
	n := t.networkLimiter[i]
	if n == verdict.Congestion && t.vantage == AtSender && !t.marked {
		return verdict.Sender
	}
	return n
}
