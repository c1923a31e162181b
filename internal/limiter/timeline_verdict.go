package limiter

import (
	"fmt"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// conclude adds to a headline its subtype, candidates, confidence, evidence and what the
// fix would give.
func (t *timeline) conclude(g *Diagnosis) {
	switch g.Limiter {
	case ReceiverWindow:
		g.Subtype = t.windowSubtype()
	case Congestion:
		if t.policed() {
			g.Subtype = Policer
		}
	case Sender:
		if g.Candidates = t.senderCandidates(); t.vantage != AtSender {
			g.Candidates = append(g.Candidates, AckPath) // late acknowledgements look like a late sender
		}
	case Unknown:
		g.Candidates = []Name{Sender, ReceiverWindow, Congestion}
	}
	g.Confidence = t.confidence(g)
	for _, name := range g.Shares.Top() {
		if g.Shares[name] < worthTelling {
			continue
		}
		if text, values := t.tell(name, g.Shares[name]); text != "" {
			g.Evidence = append(g.Evidence, Evidence{name, text, values})
		}
	}
	g.Evidence = append(g.Evidence, t.caveats()...)
	g.Prediction = t.predict(g.Verdict)
}

// windowSubtype says why the receive window is what it is.
func (t *timeline) windowSubtype() string {
	d := t.d
	first, last := middleWindow(d.Slices[len(d.Slices)/4:]), d.Slices[len(d.Slices)-1].WindowMax
	switch {
	case d.Scale == 0 && d.ScaleKnown && float64(d.WindowMax) > 0.9*65535:
		return Unscaled
	case float64(last) > 1.2*float64(first):
		return AutotuneGrowing
	case d.Scale > 0 && d.WindowMax > 64000 && d.WindowMax <= 65536:
		return Stuck
	}
	return Fixed
}

// evenness is the lowest and the highest rate of six equal parts of the time after the
// beginning, bytes/s.
func (t *timeline) evenness() (least, most float64) {
	const parts = 6
	all := t.d.Slices[len(t.d.Slices)/8+1:]
	if len(all) < 2*parts {
		return 0, 0
	}
	var acked, took [parts]float64
	begin, end := all[0].Start, all[len(all)-1].End
	for i := range all {
		part := int((all[i].Start - begin) * parts / max(end-begin, 1))
		acked[part] += float64(all[i].Acked)
		took[part] += sliceTime(&all[i])
	}
	for i := range acked {
		if took[i] == 0 {
			return 0, 0
		}
		rate := acked[i] / took[i]
		if most = max(most, rate); i == 0 || rate < least {
			least = rate
		}
	}
	return least, most
}

func middleWindow(all []flow.Slice) int64 {
	return all[0].WindowMax
}

// policed: repeated loss without a queue at a rate that stays the same, after a faster
// beginning.
func (t *timeline) policed() bool {
	d := t.d
	if d.LossEvents < 3 || t.queueing || len(d.Slices) < 8 {
		return false
	}
	const over, even = 1.3, 1.3
	first := 0.0
	for i := range d.Slices[:len(d.Slices)/8+1] {
		first = max(first, d.Slices[i].PeakAcked)
	}
	least, most := t.evenness()
	return first > over*most && most < even*least
}

// senderCandidates are what may hold a sender back that has room in every window, the
// likeliest first.
func (t *timeline) senderCandidates() []Name {
	d := t.d
	small := d.Segments > 0 && float64(d.SmallSegments) > 0.05*float64(d.Segments)
	flat := 0.0
	for i := range d.Slices {
		if s := &d.Slices[i]; s.OutMax > 0 && float64(s.OutMax) > 0.9*float64(d.MaxOut) {
			flat += sliceTime(s)
		}
	}
	switch {
	case small:
		return []Name{Application, SendBuffer, Pacing, LocalQueue, CPU, Congestion}
	case flat > 0.8*t.length:
		return []Name{SendBuffer, Pacing, Application, LocalQueue, CPU, Congestion}
	}
	return []Name{Pacing, Application, SendBuffer, LocalQueue, CPU, Congestion}
}

func (t *timeline) confidence(g *Diagnosis) Confidence {
	if g.Limiter == Mixed || g.Limiter == Unknown {
		return Low
	}
	level := t.evidenceLevel(g.Limiter)
	rounds := int32(0)
	for i := range t.d.Slices {
		rounds += t.d.Slices[i].Rounds
	}
	if rounds < fewRounds && g.Limiter != SlowStart && g.Limiter != ReceiverApplication && g.Limiter != MTUBlackHole ||
		g.Shares[g.Limiter] < clearShare || float64(t.d.Unseen) > 0.02*float64(t.d.Bytes) || t.c.ClockSteps > 0 {
		level = lower(level)
	}
	if t.coarse() {
		level = lower(level)
	}
	if t.vantage == VantageUnknown && g.Limiter != MTUBlackHole {
		level = Low
	}
	return level
}

// coarse says that the capture's clock is too coarse for the round trip.
func (t *timeline) coarse() bool {
	const grain = 500e3
	return t.c.Grain > grain && t.d.Segments > 100 && float64(t.c.Grain)/1e9 > t.base/20
}

func (t *timeline) evidenceLevel(n Name) Confidence {
	d := t.d
	corrected := t.vantage != AtSender
	switch n {
	case ReceiverWindow:
		near := t.base > 0 && float64(d.WindowMax)/t.base > 1.5*t.goodput
		return when(d.ScaleKnown && !near && t.vantage != VantageUnknown, when(t.vantage != InTheMiddle, High))
	case ReceiverApplication:
		return when(d.ZeroWindows > 0 && d.ScaleKnown, High)
	case Application:
		const long = 0.1 // seconds a pause: longer than pacing and shapers leave
		return when(!corrected && (d.Pauses == 0 || t.clock(flow.Idle) >= long*float64(d.Pauses)), High)
	case NagleDelayedAck, MTUBlackHole:
		return High
	case SlowStart:
		return when((t.c.SYN || t.c.SYNACK) && t.clock(flow.Growth) > 0.5*t.time[SlowStart], High)
	case Congestion:
		return when(d.LossEvents >= 3 && t.queueMissing() && t.clock(flow.Slack) < 0.1*t.length, High)
	case Bottleneck:
		return when(t.queueing && d.ScaleKnown && t.queueAhead(), High)
	}
	return Medium
}

// queueMissing says that a standing queue would have been seen and was not: the empty
// path's round trip is known, and no part of it was taken for constant.
func (t *timeline) queueMissing() bool {
	return !t.queueing && t.c.SYN && t.c.SYNACK && (t.vantage == AtSender || t.d.LoopFollowed)
}

// queueAhead says that a queue of acknowledgements would have been told from one of data:
// by their timestamps, or because they had not gone far yet.
func (t *timeline) queueAhead() bool {
	return t.vantage == AtReceiver || slices.ContainsFunc(t.d.Slices, func(s flow.Slice) bool { return s.Backs > 0 })
}

func (t *timeline) tell(name Name, share float64) (string, map[string]float64) {
	d := t.d
	took := percent(share) + " of the time"
	base := seconds(t.base)
	switch name {
	case ReceiverWindow:
		text := fmt.Sprintf("the receiver's window of %s was full %s; at a round trip of %s it allows %s", units.Size(d.WindowMax).Exact(), took,
			units.Time(base), t.allows(d.WindowMax))
		if !d.ScaleKnown {
			text += fmt.Sprintf(" (the handshake was not captured: a window scale of %d is the least that fits)", d.Scale)
		}
		return text, map[string]float64{"window_bytes": float64(d.WindowMax), "rtt_s": t.base, "window_scale": float64(d.Scale)}
	case ReceiverApplication:
		return fmt.Sprintf("the receiver's window had shrunk from %s and held the sender back %s (%d acknowledgements with a window of 0): the receiving program does not read as fast as data comes",
			units.Size(d.WindowMax).Exact(), took, d.ZeroWindows), map[string]float64{"zero_windows": float64(d.ZeroWindows)}
	case Application:
		if t.clock(flow.Idle) > 0.3*share*t.length {
			return fmt.Sprintf("nothing was outstanding and the window open %s: the sending program had nothing to send", took),
				map[string]float64{"idle_s": t.clock(flow.Idle)}
		}
		return fmt.Sprintf("each piece of data was sent only after an answer to the one before, %s", took), nil
	case NagleDelayedAck:
		return "less than a segment waited for the acknowledgement of the one before it " + took + ", and that came 30 ms late or more (Nagle's rule against a delayed ACK)",
			map[string]float64{"held_s": t.clock(flow.Held)}
	case MTUBlackHole:
		text := "the same large segment was lost again and again " + took + " while smaller ones got through"
		if d.TooBig > 0 {
			text += fmt.Sprintf("; a router said that %d bytes are the most", d.RouterMTU)
		}
		return text, map[string]float64{"icmp_too_big": float64(d.TooBig)}
	case SlowStart:
		return fmt.Sprintf("what was outstanding still grew from round trip to round trip %s; the transfer lasted %.0f of them", took, t.length/max(t.base, 1e-6)),
			map[string]float64{"rtt_s": t.base}
	case Congestion:
		return fmt.Sprintf("%d of %d segments were sent again in %d recoveries, and the congestion window they left held the sender back %s (round trip %s, %s at the least)",
				d.Retransmitted, d.Segments, d.LossEvents, took, units.Time(t.meanRTT()), units.Time(base)),
			map[string]float64{"retransmitted_segments": float64(d.Retransmitted), "loss_events": float64(d.LossEvents), "timeouts": float64(d.Timeouts)}
	case Bottleneck:
		text := fmt.Sprintf("the path delivered its best, %s, %s", units.Rate(t.capacity*8), took)
		if t.queueing {
			text += fmt.Sprintf(", with a standing queue: the round trip was %s, %s when empty", units.Time(t.meanRTT()), units.Time(base))
		} else {
			text += fmt.Sprintf("; faster sending came out no faster (round trip %s, %s when empty)", units.Time(t.meanRTT()), units.Time(base))
		}
		if t.clock(flow.Full) > 0.25*t.length {
			text += "; the receiver's window was also full, but would allow " + t.allows(d.WindowMax).String()
		}
		return text, map[string]float64{"best_bps": t.capacity * 8, "rtt_s": t.meanRTT().Seconds(), "rtt_base_s": t.base}
	case AckPath:
		return fmt.Sprintf("acknowledgements queued on their way back %s: the round trip was %s, %s when empty, and by their timestamps most of the difference was theirs",
			took, units.Time(t.meanRTT()), units.Time(base)), map[string]float64{"rtt_s": t.meanRTT().Seconds(), "rtt_base_s": t.base}
	case Sender:
		return fmt.Sprintf("%s outstanding at the most, with room in the window (%s), nothing lost and no queue %s: the sending host holds itself back",
				units.Size(d.MaxOut).Exact(), units.Size(d.WindowMax).Exact(), took),
			map[string]float64{"outstanding_bytes": float64(d.MaxOut), "window_bytes": float64(d.WindowMax)}
	case Unknown:
		return t.missing(took), nil
	}
	return "", nil
}

func (t *timeline) missing(took string) string {
	d := t.d
	switch {
	case float64(d.Unseen) > 0.02*float64(d.Bytes):
		return fmt.Sprintf("%s of acknowledged data are not in the capture: the time around them says nothing, %s", units.Size(d.Unseen).Exact(), took)
	case !d.ScaleKnown:
		return fmt.Sprintf("the handshake was not captured; window scales %d to 14 fit, so whether the window was full is not known %s", d.Scale, took)
	}
	return "no sign of any limiter " + took
}

// caveats are what lowers the worth of the verdict.
func (t *timeline) caveats() (all []Evidence) {
	d := t.d
	if d.ScaleKnown && d.Scale == 0 && t.time[ReceiverWindow] == 0 && d.MaxOut > 40000 {
		all = append(all, Evidence{ReceiverWindow, "no window scale was agreed on: the window can never exceed 65,535 bytes", nil})
	}
	if d.Unseen > 0 && float64(d.Unseen) <= 0.02*float64(d.Bytes) {
		all = append(all, Evidence{Unknown, fmt.Sprintf("%s of acknowledged data are missing from the capture", units.Size(d.Unseen).Exact()), nil})
	}
	if t.coarse() {
		all = append(all, Evidence{Unknown, fmt.Sprintf("the capture's clock counts in steps of %s, too coarse for a round trip of %s",
			units.Time(time.Duration(t.c.Grain)), units.Time(seconds(t.base))), nil})
	}
	if t.c.ClockSteps > 0 {
		all = append(all, Evidence{Unknown, fmt.Sprintf("the capture's clock stepped back %d times", t.c.ClockSteps), nil})
	}
	return all
}

func (t *timeline) clock(c flow.Clock) (sum float64) {
	for i := range t.d.Slices {
		sum += float64(t.d.Slices[i].Clock[c]) / 1e9
	}
	return sum
}

func (t *timeline) meanRTT() time.Duration {
	var sum, n int64
	for i := range t.d.Slices {
		sum += t.d.Slices[i].RTTSum
		n += int64(t.d.Slices[i].RTTs)
	}
	if n == 0 {
		return 0
	}
	return time.Duration(sum / n)
}

// allows is what a window gives over the empty path.
func (t *timeline) allows(window int64) units.Rate {
	if t.base <= 0 {
		return 0
	}
	return units.Rate(float64(window) * 8 / t.base)
}
