package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// unknownCandidates returns the limiters that are possible in most of the unknown time.
func (t *timeline) unknownCandidates() []verdict.Name {
	switch {
	case t.unclear:
		return []verdict.Name{verdict.NagleDelayedAck, verdict.Bottleneck}
	case t.clock(flow.Idle) > threshold.HeadlineShare.Value*t.length:
		return []verdict.Name{verdict.Application, verdict.Congestion}
	case t.mostUnknown(t.waitedTime):
		return []verdict.Name{verdict.AckPath, verdict.Bottleneck}
	case t.evenLoss:
		return []verdict.Name{verdict.Bottleneck, verdict.Congestion}
	case t.mostUnknown(t.unseenQueueTime):
		return []verdict.Name{verdict.Bottleneck, verdict.Sender, verdict.ReceiverWindow}
	}
	candidates := []verdict.Name{verdict.Sender, verdict.ReceiverWindow, verdict.Congestion}
	if t.timerInTrips() {
		candidates = append(candidates, verdict.NagleDelayedAck)
	}
	return candidates
}

// mostUnknown reports whether a time, in seconds, is most of the time that has no other cause.
func (t *timeline) mostUnknown(took float64) bool {
	return took > threshold.HeadlineShare.Value*t.time[verdict.Unknown]
}

// missing is why so much of the time is not known.
func (t *timeline) missing(v verdict.Values) (verdict.Code, verdict.Values) {
	d := t.d
	switch {
	case t.unclear:
		v["waits"] = float64(d.UnclearWaits)
		v["wait_s"] = float64(d.UnclearWaited) / 1e9 / float64(d.UnclearWaits)
		return verdict.CapturedTimerOrLine, v
	case t.losing && t.vantage != AtSender && t.clock(flow.Idle) > threshold.HeadlineShare.Value*t.length:
		v["idle_s"] = t.clock(flow.Idle)
		return verdict.CapturedIdleOrLoss, v
	case float64(d.Unseen) > threshold.UnreliableCapture*float64(d.Bytes):
		addMissing(v, d.Unseen, d.Bytes)
		return verdict.CapturedGaps, v
	case t.mostUnknown(t.waitedTime):
		v["rtt_base_s"] = t.baseRTT
		return verdict.CapturedWaitsSomewhere, v
	case t.evenLoss:
		t.pathRate(verdict.Unknown, v)
		return verdict.CapturedLossOrLink, v
	case t.mostUnknown(t.unseenQueueTime):
		t.pathRate(verdict.Unknown, v)
		return verdict.CapturedQueueUnseen, v
	case !d.ScaleKnown:
		v["window_scale_least"] = float64(d.Scale)
		return verdict.CapturedNoHandshake, v
	}
	return verdict.CapturedNoSign, v
}

// timerOrLine reports whether blocks waited for their only acknowledgement for most of the time, and the receiver's
// delayed-ACK timer as well as a slow line may have taken that long.
func (t *timeline) timerOrLine() bool {
	return !t.losing && !t.blockwise && t.d.UnclearWaits >= int64(threshold.FewRounds.Value) &&
		float64(t.d.UnclearWaited)/1e9 > threshold.HeadlineShare.Value*t.length
}

// timerInTrips reports whether the receiver's delayed-ACK timer may be a part of each round trip: the handshake is not
// in the capture, and the sender waited for the only acknowledgement of each few segments.
func (t *timeline) timerInTrips() bool {
	d := t.d
	return !t.c.SYN && !t.c.SYNACK && !t.losing && d.RTTMin-d.LoopMin >= int64(threshold.DelayedAckLeast) &&
		d.MaxOut < threshold.OneAckSegments*int64(max(d.MSS, 536)) && 2*d.Restarts > int64(t.rounds) &&
		d.Acks <= d.Restarts+threshold.FewSegments
}
