package timeline

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

func (t *timeline) confidence(g *Diagnosis) verdict.Confidence {
	if g.Limiter == verdict.Mixed || g.Limiter == verdict.Unknown {
		return verdict.Low
	}
	level := t.evidenceLevel(g)
	needsRate := !t.rateless(g)
	fewRounds := t.rounds < int(threshold.FewRounds.Value) && needsRate && g.Limiter != verdict.SlowStart
	if fewRounds || g.Shares[g.Limiter] < threshold.ClearShare.Value {
		level = verdict.Lower(level)
	}
	if !t.trust.Supports(g.Limiter) {
		level = verdict.Lower(level)
	}
	few := t.rounds < threshold.SureRounds || t.segments() < threshold.SureSegments
	if needsRate && level == verdict.High && few {
		level = verdict.Medium
	}
	wholeRounds := t.coarse() && float64(t.c.Grain)/1e9 > t.baseRTT // events within them are not known
	if t.vantage == VantageUnknown && g.Limiter != verdict.MTUBlackHole || t.leftOut() || wholeRounds {
		level = verdict.Low
	}
	return level
}

// leftOut reports whether acknowledgements without data seem to be left out of the capture while messages had several
// segments. Whether the program or an acknowledgement released the later ones is then not known.
func (t *timeline) leftOut() bool {
	return t.c.OnlyWithData() && t.d.Segments > t.d.Answered+threshold.FewSegments
}

// coarse reports whether the capture's clock is too coarse for the round trip.
func (t *timeline) coarse() bool {
	return time.Duration(t.c.Grain) > threshold.CoarseGrain &&
		(t.d.Segments > threshold.CoarseSegments || t.c.InBatches) &&
		float64(t.c.Grain)/1e9 > threshold.CoarseShare*t.baseRTT
}

func (t *timeline) evidenceLevel(g *Diagnosis) verdict.Confidence {
	d := t.d
	corrected := t.vantage != AtSender
	switch g.Limiter {
	case verdict.ReceiverWindow:
		return t.windowLevel(g.Subtype)
	case verdict.ReceiverApplication:
		return verdict.LowerUnless(d.ZeroWindows > 0 && d.ScaleKnown, verdict.High)
	case verdict.Application:
		if g.Subtype == verdict.ProgramWindow { // a send buffer under a lively other end would look like it
			return verdict.Medium
		}
		pausesAreClear := d.Pauses == 0 || t.clock(flow.Idle) >= threshold.ClearPause.Seconds()*float64(d.Pauses)
		return verdict.LowerUnless(!corrected && pausesAreClear, verdict.High)
	case verdict.NagleDelayedAck: // a queue of other traffic delays single acknowledgements too
		return verdict.LowerUnless(!t.blockwise || 2*d.LoneTimerWaits <= d.TimerWaits, verdict.High)
	case verdict.MTUBlackHole:
		return verdict.High
	case verdict.SlowStart:
		if !t.c.SYN && !t.c.SYNACK { // where the transfer began is not known
			return verdict.Low
		}
		// A short transfer ends in a round trip without growth. More of them are a program with less to send.
		level := t.time[verdict.SlowStart] - t.clock(flow.SlowStart)
		dry := t.d.Spacing != nil && t.d.Spacing.Dry > 0
		return verdict.LowerUnless(level <= threshold.LastRound*t.baseRTT && !dry, verdict.High)
	case verdict.Congestion:
		if g.Subtype == verdict.LostSYNs {
			return verdict.LowerUnless(t.synsLost(), verdict.High)
		}
		// Late acknowledgements are no losses. A queue that never ran empty, as of a shared link, looks like a longer path.
		if 2*d.Spurious > d.Retransmitted || !t.c.SYN || !t.c.SYNACK {
			return verdict.Low
		}
		return verdict.LowerUnless(d.LossEvents >= threshold.PolicedEvents && t.queueMissing() &&
			t.clock(flow.AppLimited) < threshold.PausingShare*t.length, verdict.High)
	case verdict.Bottleneck:
		if t.onlyEven() {
			return verdict.Low
		}
		// A program that writes by a clock of its own is as fast over any faster line, though each write fills this one.
		return verdict.LowerUnless(t.queueing && d.ScaleKnown && t.queueAhead() && !t.pausing, verdict.High)
	case verdict.Sender:
		// So few losses may hold a congestion window as well.
		allows := t.lossAllows()
		return verdict.LowerUnless(d.Segments >= int64(threshold.TransferSegments.Value) && !t.growing() &&
			(allows == 0 || allows > threshold.LossAllows*t.goodput), verdict.Medium)
	}
	return verdict.Medium
}

// windowLevel is the confidence in the evidence of a receive window.
func (t *timeline) windowLevel(subtype string) verdict.Confidence {
	if subtype == verdict.NoUpdates {
		return verdict.High
	}
	if !t.d.ScaleKnown { // a window that shrank before the capture began looks full
		return verdict.Low
	}
	m, shrank := t.c.ScaleMismatch(t.d)
	guessed := shrank && m.Scale < 0
	window, _ := t.usable(t.d.WindowMax)
	near := !shrank && t.baseRTT > 0 && window/t.baseRTT > threshold.WindowAbove*t.goodput
	level := verdict.LowerUnless(t.vantage != InTheMiddle && !guessed, verdict.High)
	return verdict.LowerUnless(!near && !t.even && t.vantage != VantageUnknown, level)
}

// queueMissing reports whether a standing queue would have been seen and was not: the empty
// path's round trip is known, and no part of it was taken for constant.
func (t *timeline) queueMissing() bool {
	return !t.queueing && t.c.SYN && t.c.SYNACK && (t.vantage == AtSender || t.d.LoopFollowed)
}

// queueAhead reports whether a queue of acknowledgements would be distinguished from one of data: by their
// timestamps, or because they had not gone far yet.
func (t *timeline) queueAhead() bool {
	return t.vantage == AtReceiver || slices.ContainsFunc(t.d.Slices, func(s flow.Slice) bool { return s.Backs > 0 })
}

// ratelessRules are the rules whose evidence is an event and not a rate. Only they give high
// confidence below threshold.SureSegments segments or threshold.SureRounds round trips.
var ratelessRules = []struct {
	name    string
	limiter verdict.Name
	applies func(t *timeline) bool
}{
	// An ICMP message that the segment was too big comes with these losses.
	{"repeated loss of one large segment", verdict.MTUBlackHole,
		func(t *timeline) bool { return t.clock(flow.BlackHole) > 0 }},
	{"all segments longer than the MSS lost", verdict.MTUBlackHole, (*timeline).oversized},
	{"lost SYNs", verdict.Congestion, (*timeline).synsLost},
	{"window that opens only in the answer to a probe", verdict.ReceiverWindow, (*timeline).noUpdates},
	{"zero window", verdict.ReceiverApplication, func(t *timeline) bool { return t.d.ZeroWindows > 0 }},
}

// rateless reports whether a rule that needs no rate supports the verdict.
func (t *timeline) rateless(g *Diagnosis) bool {
	for _, r := range ratelessRules {
		if r.limiter == g.Limiter && r.applies(t) {
			return true
		}
	}
	return false
}

// segments returns how many segments of new data were sent; a super-segment counts as its packets.
func (t *timeline) segments() int64 {
	return max(t.d.Segments-t.d.Retransmitted, t.d.Bytes/int64(max(t.d.MSS, 536)))
}

// tooFew returns the verdict on a transfer of too few bytes for any other.
func (t *timeline) tooFew() verdict.Verdict {
	why := verdict.Evidence{Code: verdict.CapturedTooFewBytes, Values: verdict.Values{"bytes": float64(t.d.Bytes)}}
	return verdict.Unobserved(why, verdict.Application, verdict.SlowStart, verdict.MTUBlackHole)
}
