package live

import (
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// confidence is high only for direct evidence: the limiter's own clock or counter, from
// an end that was seen, and far from its threshold.
func (a *analysis) confidence(v verdict.Verdict) verdict.Confidence {
	if v.Limiter == verdict.Unknown || v.Limiter == verdict.Mixed {
		return verdict.Low
	}
	level := a.evidenceLevel(v.Limiter)
	rounds := 0
	for _, c := range a.connections {
		rounds += len(c.rounds)
	}
	if rounds < threshold.FewRounds || v.Shares[v.Limiter] < threshold.ClearShare {
		level = verdict.Lower(level)
	}
	if v.Limiter == a.network.name && !a.connections[0].has(transfer.HaveSendWnd) {
		level = verdict.Lower(level) // a kernel that does not tell the peer's window cannot rule it out
	}
	if v.Limiter == verdict.Bottleneck && a.isWindowNear() {
		level = verdict.Lower(level)
	}
	return level
}

func (a *analysis) evidenceLevel(n verdict.Name) verdict.Confidence {
	c := a.connections[0]
	switch n {
	case a.network.name:
		return a.network.confidence
	case verdict.SlowStart:
		return verdict.High
	case verdict.CPU:
		return verdict.When(saturated(a.sender) || saturated(a.receiver), verdict.High)
	case verdict.Application:
		return verdict.When(c.has(transfer.HaveProgram|transfer.HaveLimits), verdict.High)
	case verdict.ReceiverApplication:
		return verdict.When(a.receiver != nil, verdict.High)
	case verdict.ReceiverWindow:
		direct := c.has(transfer.HaveSendWnd) && a.windowAloneExplains((*connection).window)
		return verdict.When(direct && hasIdleGaps.Holds(a.whole()), verdict.High)
	case verdict.SendBuffer:
		direct := c.has(transfer.HaveProgram) && a.windowAloneExplains((*connection).outstanding)
		return verdict.When(direct && hasIdleGaps.Holds(a.whole()), verdict.High)
	case verdict.NagleDelayedAck:
		return verdict.When(a.sum((*connection).awaited) > 0, verdict.High)
	case verdict.LocalQueue:
		return verdict.When(c.unsentRatio >= threshold.HeadlineShare, verdict.High)
	case verdict.Pacing:
		return verdict.When(c.spec.PacingBps > 0, verdict.High)
	}
	return verdict.Medium
}

// isWindowNear reports whether the receive window was full as well and allows hardly more than the rate at the base
// RTT.
func (a *analysis) isWindowNear() bool {
	full := ratio(a.sum((*connection).windowLimited), a.total) > threshold.AlsoFull
	each := a.path.meanRate / float64(len(a.connections))
	return full && a.path.rateAtBaseRTT(a.median((*connection).window)) <= threshold.WindowLimits*each
}

// windowAloneExplains reports whether a whole window each round trip gives the rate and no queue lengthens the round
// trip. Behind a queue a window comes every round trip too, and a larger one only lengthens the queue.
func (a *analysis) windowAloneExplains(window func(*connection, *round) int64) bool {
	each := a.path.meanRate / float64(len(a.connections))
	size := a.median(window)
	queue := hasStandingQueue.Holds(a.whole()) && a.path.rateAtBaseRTT(size) > threshold.WindowLimits*each
	return !queue && a.path.rateAtMeanRTT(size) <= threshold.WindowClearlyLimits*each
}
