package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// unknownCandidates returns the limiters that are possible in most of the unknown time.
func (t *timeline) unknownCandidates() []verdict.Name {
	switch {
	case t.clock(flow.Idle) > threshold.HeadlineShare*t.length:
		return []verdict.Name{verdict.Application, verdict.Congestion}
	case t.mostUnknown(t.waitedTime):
		return []verdict.Name{verdict.AckPath, verdict.Bottleneck}
	case t.evenLoss:
		return []verdict.Name{verdict.Bottleneck, verdict.Congestion}
	case t.mostUnknown(t.unseenQueueTime):
		return []verdict.Name{verdict.Bottleneck, verdict.Sender, verdict.ReceiverWindow}
	}
	return []verdict.Name{verdict.Sender, verdict.ReceiverWindow, verdict.Congestion}
}

// mostUnknown reports whether a time, in seconds, is most of the time that has no other cause.
func (t *timeline) mostUnknown(took float64) bool {
	return took > threshold.HeadlineShare*t.time[verdict.Unknown]
}

// missing is why so much of the time is not known.
func (t *timeline) missing(v verdict.Values) (verdict.Code, verdict.Values) {
	d := t.d
	switch {
	case t.losing && t.vantage != AtSender && t.clock(flow.Idle) > threshold.HeadlineShare*t.length:
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
