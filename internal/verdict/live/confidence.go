package live

import (
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// confidence is high only for direct evidence: the limiter's own clock or counter, from an end that was seen, and far
// from its threshold.
func (a *analysis) confidence(v *verdict.Verdict) verdict.Confidence {
	if v.Limiter == verdict.Unknown || v.Limiter == verdict.Mixed {
		return verdict.Low
	}
	a.headline = *v
	return rule.Lowered(a.evidenceLevel(v.Limiter), lowerRules, facts{a, a.connections[0], nil})
}

// Inputs of the rules on a headline.
var (
	roundCount = &quantity{Name: "rounds", Unit: "rounds", Means: "number of rounds of all connections",
		Of: func(f facts) (n float64) {
			for _, c := range f.connections {
				n += float64(len(c.rounds))
			}
			return n
		}}
	headlineShare = &quantity{Name: "headlineShare", Unit: "ratio", Means: "the limiter's share of the time",
		Of: func(f facts) float64 { return f.headline.Shares[f.headline.Limiter] }}
	windowAndUnread = &quantity{Name: "windowAndUnread", Unit: "ratio",
		Means: "share of the time of receiver-window or of receiver-application, the smaller",
		Of: func(f facts) float64 {
			shares := f.headline.Shares
			return min(shares[verdict.ReceiverWindow], shares[verdict.ReceiverApplication])
		}}
	headlineIsNetwork = rule.Fact("headlineIsNetwork", "the limiter is that of the network rules",
		func(f facts) bool { return f.headline.Limiter == f.network.name })
	windowIsNear = rule.Fact("windowIsNear",
		"the limiter is a full link, and the receive window was full as well and allows hardly more than the rate",
		func(f facts) bool { return f.headline.Limiter == verdict.Bottleneck && f.isWindowNear() },
		threshold.AlsoFull, threshold.WindowLimits)
	windowOrProgram = rule.Fact("windowOrProgram",
		"a watched connection's peer has a small window or a program that reads slowly: a sender cannot distinguish them",
		func(f facts) bool { return f.watched != nil && isWindowOrProgram(&f.headline) })
	isBlackHole = rule.Fact("isBlackHole", "the limiter is mtu-black-hole",
		func(f facts) bool { return f.headline.Limiter == verdict.MTUBlackHole })
)

// lowerRules lower the confidence in a headline: every rule that applies.
var lowerRules = []rule.Step[facts]{
	{Name: "few-rounds", When: rule.Any(roundCount.Below(threshold.MinRounds), headlineShare.Below(threshold.ClearShare))},
	// A kernel that does not report the peer's window cannot rule it out.
	{Name: "window-not-reported", When: rule.All(headlineIsNetwork,
		rule.Not(has("knowsWindow", "the kernel reports the receive window", transfer.HaveSendWnd)))},
	{Name: "window-near", When: windowIsNear},
	{Name: "window-or-program", When: rule.All(windowOrProgram, windowAndUnread.AtLeast(threshold.CandidateShare)),
		AtMost: verdict.Low},
	// Where full segments have come through before, nobody may be there any more.
	{Name: "data-arrived", When: rule.All(isBlackHole, dataArrived), AtMost: verdict.Low},
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
