package live

import (
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
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
	if rounds < int(threshold.MinRounds.Value) || v.Shares[v.Limiter] < threshold.ClearShare.Value {
		level = verdict.Lower(level)
	}
	if v.Limiter == a.network.name && !a.connections[0].has(transfer.HaveSendWnd) {
		level = verdict.Lower(level) // a kernel that does not report the peer's window cannot rule it out
	}
	if v.Limiter == verdict.Bottleneck && a.isWindowNear() {
		level = verdict.Lower(level)
	}
	return level
}

// highRules say when the evidence of a limiter is direct, besides what the network rules say of theirs. Without, and of
// limiters that are not in the list, it is medium.
var highRules = []struct {
	limiter verdict.Name
	when    condition
}{
	{verdict.SlowStart, condition{}},
	{verdict.CPU, rule.Any(senderThread.AtLeast(threshold.SaturatedThread), receiverSaturated)},
	{verdict.Application, rule.All(knowsProgram, has("knowsClocks", "the kernel reports its three clocks",
		transfer.HaveLimits))},
	{verdict.ReceiverApplication, receiverSeen},
	{verdict.ReceiverWindow, rule.All(has("knowsWindow", "the kernel reports the receive window", transfer.HaveSendWnd),
		aloneExplains("windowAloneExplains", "a receive window", (*connection).window), hasIdleGaps)},
	{verdict.SendBuffer, rule.All(knowsProgram,
		aloneExplains("bufferAloneExplains", "a full send buffer", (*connection).outstanding), hasIdleGaps)},
	{verdict.NagleDelayedAck, rule.Fact("awaitsResponses", "the program waited for responses",
		func(f facts) bool { return f.sum((*connection).awaited) > 0 })},
	{verdict.LocalQueue, unsentRatio.AtLeast(threshold.HeadlineShare)},
	{verdict.Pacing, pacingLimit.Positive()},
}

func aloneExplains(name, limiter string, size func(*connection, *round) int64) condition {
	return rule.Fact(name, limiter+" each round trip gives the rate, and no queue lengthens the round trip",
		func(f facts) bool { return f.windowAloneExplains(size) },
		threshold.StandingQueue, threshold.WindowLimits,
		threshold.WindowClearlyLimits)
}

// evidenceLevel returns the confidence that the evidence of a limiter allows.
func (a *analysis) evidenceLevel(n verdict.Name) verdict.Confidence {
	if n == a.network.name {
		return a.network.confidence
	}
	f := facts{a, a.connections[0], nil}
	for i := range highRules {
		if r := &highRules[i]; r.limiter == n {
			return verdict.LowerUnless(r.when.IsTrue(f), verdict.High)
		}
	}
	return verdict.Medium
}

// isWindowNear reports whether the receive window was full as well and allows hardly more than the rate at the base
// RTT.
func (a *analysis) isWindowNear() bool {
	full := ratio(a.sum((*connection).windowLimited), a.total) > threshold.AlsoFull.Value
	each := a.path.meanRate / float64(len(a.connections))
	return full && a.path.rateAtBaseRTT(a.median((*connection).window)) <= threshold.WindowLimits.Value*each
}

// windowAloneExplains reports whether a whole window each round trip gives the rate and no queue lengthens the round
// trip. Behind a queue a window comes every round trip too, and a larger one only lengthens the queue.
func (a *analysis) windowAloneExplains(window func(*connection, *round) int64) bool {
	each := a.path.meanRate / float64(len(a.connections))
	size := a.median(window)
	queue := hasStandingQueue.IsTrue(a.whole()) && a.path.rateAtBaseRTT(size) > threshold.WindowLimits.Value*each
	return !queue && a.path.rateAtMeanRTT(size) <= threshold.WindowClearlyLimits.Value*each
}
