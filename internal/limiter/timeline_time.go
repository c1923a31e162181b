package limiter

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// queued says that a queue stood in the path: round trips above the empty path's by more
// than they scatter within a round.
func (t *timeline) queued(s *flow.Slice) bool {
	const segments = 4 // fewer outstanding queue behind each other at most
	if s.RTTs == 0 || t.base == 0 || s.OutMax < segments*int64(t.d.MSS) {
		return false
	}
	const least, packets = 200e-6, 3
	excess := float64(s.RTTSum)/float64(s.RTTs)/1e9 - t.base
	serialised := packets * float64(t.d.MSS) / max(t.link, t.capacity, 1)
	return excess > max(standingQueue*t.base, least, serialised) && excess > 2.2*s.RTTSpread()/1e9
}

// ackQueued says that what stood in the path were acknowledgements on their way back: by
// their timestamps most of what the round trips had waited.
func (t *timeline) ackQueued(s *flow.Slice) bool {
	const most, resolved = 0.7, 3e-3 // seconds: senders count milliseconds
	if s.Backs == 0 || !t.queued(s) {
		return false
	}
	back := float64(s.BackSum) / float64(s.Backs) / 1e9
	return back > resolved && back > most*(float64(s.RTTSum)/float64(s.RTTs)/1e9-t.base)
}

// neverEmpty says that even the least round trip of the slice had waited for as long as the
// empty path takes, and for more than a few packets of its own: the link in front of that
// queue stood still for no moment, whoever filled it.
func (t *timeline) neverEmpty(s *flow.Slice) bool {
	const packets = 4
	own := packets * float64(t.d.MSS) / max(t.link, t.capacity, 1)
	return s.RTTs > 0 && t.base > 0 && float64(s.RTTMin)/1e9-t.base > max(t.base, own)
}

// full says that the slice's rate is the best there is: as fast as the path delivers what
// is outstanding at once, or, where that was never seen, as the best of the transfer.
func (t *timeline) full(s *flow.Slice) bool {
	return t.crowd*t.rate(s) >= 0.75*max(t.link, t.capacity)
}

// judgeNetwork names, for each slice, what limited while the sender had data out and no
// window was full.
func (t *timeline) judgeNetwork() {
	t.network = make([]Name, len(t.d.Slices))
	for i := range t.d.Slices {
		t.network[i] = t.networkOf(i)
	}
}

func (t *timeline) networkOf(i int) Name {
	s := &t.d.Slices[i]
	switch {
	case t.spaced(i):
		return Sender
	case t.ackQueued(s):
		return AckPath
	case t.queued(s) && t.full(s):
		return Bottleneck
	case t.stopAndWait(s):
		return Application
	case t.filled && t.crowd*t.rate(s) > 0.5*t.link:
		return Bottleneck
	case t.losing && t.neverEmpty(s):
		return Bottleneck
	case t.losing && t.recovering[i]:
		return Congestion
	case t.full(s) && t.probed:
		return Bottleneck
	case t.brief && !t.losing:
		return SlowStart
	case s.RTTs == 0 && s.Sent == 0:
		return Unknown
	case s.WindowMax == 0 || !t.d.ScaleKnown && s.OutMax*2 > s.WindowMax:
		return Unknown
	}
	if t.pauses(i) {
		return t.idleOf(i)
	}
	if i < t.opening {
		return SlowStart
	}
	return Sender
}

// spaced says that a sender lets data out in pieces and has nothing outstanding between
// them for a tenth of the time and more, of its own accord: what a piece waits for in the
// path is only itself.
func (t *timeline) spaced(i int) bool { return t.pauses(i) && t.idleOf(i) == Sender }

// pauses says that nothing was outstanding for a tenth of this slice and more, and of the
// whole transfer.
func (t *timeline) pauses(i int) bool {
	const between = 0.1
	s := &t.d.Slices[i]
	return t.pausing && !t.losing && float64(s.Clock[flow.Idle]) > between*float64(s.End-s.Start)
}

// stopAndWait says that the sender waited for an answer before it sent more: a little
// data a round, and data coming back.
func (t *timeline) stopAndWait(s *flow.Slice) bool {
	return int(t.d.Answered)*2 >= t.rounds && t.rounds > 2 && s.OutMax*4 <= s.WindowMax && !t.losing
}

// linkFull says that the whole transfer ran within a tenth of what the path delivers, with
// a queue or probing to show that more was tried: nothing but the link limits then.
func (t *timeline) linkFull() bool {
	if t.link == 0 || t.crowd*max(t.goodput, quantileOf(t, 0.5)) < t.link/1.1 {
		return false
	}
	if t.losing { // faster sending comes out no faster of a policer either
		return t.queueing || t.queueSeen()
	}
	return t.queueing || t.probed
}

// queueSeen says that round trips rose by a few packets' worth now and then, as they do
// before a shallow queue overflows, but not before a policer drops.
func (t *timeline) queueSeen() bool {
	const packets = 5
	rises := make([]weighted, 0, len(t.d.Slices))
	for i := range t.d.Slices {
		if s := &t.d.Slices[i]; s.RTTs > 0 {
			rises = append(rises, weighted{float64(s.RTTMax)/1e9 - t.base, sliceTime(s)})
		}
	}
	return quantile(rises, 0.6) > packets*float64(t.d.MSS)/t.link
}

// short says that the transfer was over before the congestion window had opened.
func (t *timeline) short() bool {
	grew := 0.0
	for i := range t.d.Slices {
		grew += float64(t.d.Slices[i].Clock[flow.Growth]) / 1e9
	}
	return grew > 0 && grew > 0.5*(t.length-1.2*t.base)
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

// spend gives a slice's time away, in seconds, to what is empty.
func (t *timeline) spend(i int, to *spending) {
	s := &t.d.Slices[i]
	add := func(n Name, clock flow.Clock) {
		if s.Clock[clock] > 0 {
			to.add(n, float64(s.Clock[clock])/1e9)
		}
	}
	const unreliable = 0.1
	if s.Unseen > 0 && float64(s.Unseen) > unreliable*float64(s.Sent) {
		to.add(Unknown, sliceTime(s))
		return
	}
	add(t.idleOf(i), flow.Idle)
	add(NagleDelayedAck, flow.Held)
	add(MTUBlackHole, flow.BlackHole)
	add(t.growthOf(i), flow.Growth)
	if t.d.ScaleKnown || t.d.ZeroWindows > 0 {
		add(ReceiverApplication, flow.Closed)
	} else {
		add(Unknown, flow.Closed)
	}
	add(t.windowOf(s), flow.Full)
	add(t.repairOf(s), flow.Repair)
	add(t.network[i], flow.Busy)
	add(t.slackOf(i), flow.Slack)
}

// growthOf is what limited while the outstanding data multiplied: the beginning of a
// transfer or of what follows a pause, but after a timeout the loss before it (RFC 5681,
// 3.1: the loss window).
func (t *timeline) growthOf(i int) Name {
	if t.losing && t.d.Timeouts > 0 && slices.ContainsFunc(t.d.Slices[:i], func(s flow.Slice) bool { return s.Losses > 0 }) {
		return Congestion
	}
	return SlowStart
}

// windowOf is what limited while the window was full: the link, where the window would
// allow a fifth more than what got through.
func (t *timeline) windowOf(s *flow.Slice) Name {
	if !t.windowKnown() {
		return Unknown
	}
	if t.base > 0 && s.WindowMax > 0 && float64(s.WindowMax)/t.base > 1.2*t.rate(s) {
		switch {
		case t.ackQueued(s):
			return AckPath
		case t.queued(s) && t.full(s):
			return Bottleneck
		}
	}
	if t.base > 0 && s.WindowMax > 0 && float64(s.WindowMax)/t.base > 2*t.rate(s) && t.losing {
		return Congestion
	}
	return ReceiverWindow
}

// idleOf is what limited while nothing was outstanding: the program, if what came before
// was less than a full segment, so all that there was, or the pauses are long. Else a
// paced or shaped sender may have let segments out one by one.
func (t *timeline) idleOf(i int) Name {
	const long = 0.2 // seconds
	if t.losing && t.vantage != AtSender {
		return t.network[i] // what is outstanding is not known well enough during repairs
	}
	if t.d.Tails*2 >= t.d.Pauses || t.clock(flow.Idle) >= long*float64(t.d.Pauses) {
		return Application
	}
	return Sender
}

// windowKnown says whether the window's size can be relied on. Where the handshake is not
// in the capture, the least scale that fits is believed only if what is outstanding stayed
// at that window for long.
func (t *timeline) windowKnown() bool {
	d := t.d
	if d.ScaleKnown {
		return true
	}
	const plateau, segments = 0.7, 8
	full := t.clock(flow.Full)
	return full > plateau*t.length && d.WindowMax >= int64(segments*d.MSS) && d.ScaleRaise-d.First < (d.Last-d.First)/3
}

// slackOf is what limited while the sender had far less outstanding than before: itself.
func (t *timeline) slackOf(i int) Name {
	n := t.network[i]
	if n == Congestion && t.vantage == AtSender {
		return Sender
	}
	return n
}

// repairOf is what limited during a repair: the link, where it was kept full all the same.
func (t *timeline) repairOf(s *flow.Slice) Name {
	if t.filled || t.queueing && t.full(s) || t.neverEmpty(s) {
		return Bottleneck
	}
	return Congestion
}
