package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

type (
	quantity  = rule.Quantity[*timeline]
	condition = rule.Condition[*timeline]
)

// fact is a statement about a captured direction.
func fact(name, means string, of func(*timeline) bool, uses ...*threshold.Number) condition {
	return rule.Fact(name, means, of, uses...)
}

// Rules returns the ordered rules by which a capture is judged, as far as they are lists.
func Rules() []rule.List {
	return []rule.List{
		rule.ListLevels("Confidence in a limiter by a capture: the first rule of the limiter that applies, else medium",
			levels),
		rule.ListSteps("Lower confidence in any limiter by a capture: every rule that applies", steps)}
}

// Inputs of the rules on a captured direction.
var (
	limiterShare = &quantity{Name: "limiterShare", Unit: "ratio", Means: "share of the time of the limiter",
		Of: func(t *timeline) float64 { return t.headline.share }}
	capturedRounds = &quantity{Name: "capturedRounds", Unit: "rounds", Means: "round trips with data",
		Of: func(t *timeline) float64 { return float64(t.rounds) }}
	newSegments = &quantity{Name: "newSegments", Unit: "segments",
		Means: "segments of new data; a super-segment counts as its packets",
		Of:    func(t *timeline) float64 { return float64(t.segments()) }}
	dataSegments = &quantity{Name: "dataSegments", Unit: "segments", Means: "segments with data, as captured",
		Of: func(t *timeline) float64 { return float64(t.d.Segments) }}
	zeroWindows = &quantity{Name: "zeroWindows", Unit: "events", Means: "times at which the receive window closed",
		Of: func(t *timeline) float64 { return float64(t.d.ZeroWindows) }}
	pauseCount = &quantity{Name: "pauseCount", Unit: "events", Means: "pauses with nothing outstanding",
		Of: func(t *timeline) float64 { return float64(t.d.Pauses) }}
	idleTime = &quantity{Name: "capturedIdleTime", Unit: "time", Means: "time with nothing outstanding",
		Of: func(t *timeline) float64 { return 1e9 * t.clock(flow.Idle) }}
	capturedLossEvents = &quantity{Name: "capturedLossEvents", Unit: "loss events",
		Means: "number of losses, each with those that follow in its round trip",
		Of:    func(t *timeline) float64 { return float64(t.d.LossEvents) }}
	appLimitedRatio = &quantity{Name: "appLimitedRatio", Unit: "ratio",
		Means: "share of the time in which the program had sent all",
		Of:    func(t *timeline) float64 { return t.clock(flow.AppLimited) / t.length }}
	blackHoleTime = &quantity{Name: "blackHoleTime", Unit: "s",
		Means: "time in which one large segment was lost again and again",
		Of:    func(t *timeline) float64 { return t.clock(flow.BlackHole) }}

	isProgramWindow = fact("isProgramWindow", "the subtype is program-window",
		func(t *timeline) bool { return t.headline.subtype == verdict.ProgramWindow })
	isLostSYNs = fact("isLostSYNs", "the subtype is lost-syns",
		func(t *timeline) bool { return t.headline.subtype == verdict.LostSYNs })
	isNoUpdates = fact("isNoUpdates", "the subtype is no-updates",
		func(t *timeline) bool { return t.headline.subtype == verdict.NoUpdates })
	isSlowStart = fact("isSlowStart", "the limiter is slow-start",
		func(t *timeline) bool { return t.headline.limiter == verdict.SlowStart })
	isBlackHole = fact("isBlackHole", "the limiter is mtu-black-hole",
		func(t *timeline) bool { return t.headline.limiter == verdict.MTUBlackHole })

	atSender = fact("atSender", "the tap is at the sender",
		func(t *timeline) bool { return t.vantage == AtSender })
	inTheMiddle = fact("inTheMiddle", "the tap is in the middle",
		func(t *timeline) bool { return t.vantage == InTheMiddle })
	tapUnknown = fact("tapUnknown", "the place of the tap is not known",
		func(t *timeline) bool { return t.vantage == VantageUnknown })
	knowsScale = fact("knowsScale", "the window scale is known",
		func(t *timeline) bool { return t.d.ScaleKnown })
	knowsHandshake = fact("knowsHandshake", "both segments of the handshake were captured",
		func(t *timeline) bool { return t.c.SYN && t.c.SYNACK })
	knowsStart = fact("knowsStart", "one of them was captured",
		func(t *timeline) bool { return t.c.SYN || t.c.SYNACK })
	isGuessedScale = fact("isGuessedScale",
		"the receiver scales its windows otherwise than it offered, by a guessed factor",
		(*timeline).guessedScale)
	windowAllowsMore = fact("windowAllowsMore", "the largest window gives clearly more than the rate",
		(*timeline).windowAbove, threshold.WindowAbove)
	acksEven = fact("acksEven", "acknowledgements come to the sender at one pace, without pauses",
		func(t *timeline) bool { return t.even })
	waitsBlockwise = fact("waitsBlockwise", "waits for the receiver's delayed-ACK timer are frequent",
		func(t *timeline) bool { return t.blockwise }, threshold.FewRounds, threshold.PausingShare)
	timerAlone = fact("timerAlone", "most waits have only one acknowledgement",
		func(t *timeline) bool { return 2*t.d.LoneTimerWaits > t.d.TimerWaits })
	isLastRound = fact("isLastRound", "no more than the last round trip was without growth",
		(*timeline).isLastRound, threshold.LastRound)
	hasLostSYNs    = fact("hasLostSYNs", "SYNs were retransmitted without an answer", (*timeline).synsLost)
	mostlySpurious = fact("mostlySpurious", "most retransmitted segments had arrived",
		func(t *timeline) bool { return 2*t.d.Spurious > t.d.Retransmitted })
	queueMissing = fact("queueMissing", "a standing queue would have been seen and was not", (*timeline).queueMissing)
	queueAhead   = fact("queueAhead", "a queue of acknowledgements would be distinguished from one of data",
		(*timeline).queueAhead)
	isQueueing = fact("isQueueing", "a standing queue was seen in much of the time",
		func(t *timeline) bool { return t.queueing })
	isPausing = fact("isPausing", "the program pauses",
		func(t *timeline) bool { return t.pausing }, threshold.PausingShare)
	isOnlyEven  = fact("isOnlyEven", "only the even spacing of data shows a full link", (*timeline).onlyEven)
	isGrowing   = fact("isGrowing", "the bytes in flight grow", (*timeline).growing)
	lossMayHold = fact("lossMayHold", "losses allow hardly more than the rate", func(t *timeline) bool {
		allows := t.lossAllows()
		return allows != 0 && allows <= threshold.LossAllows.Value*t.goodput
	}, threshold.LossAllows)
	isOversized  = fact("isOversized", "all segments longer than the MSS were lost", (*timeline).oversized)
	hasNoUpdates = fact("hasNoUpdates", "the window opens only in the answer to a probe", (*timeline).noUpdates)
	isUntrusted  = fact("isUntrusted", "the capture does not support losses or times of the limiter",
		func(t *timeline) bool { return !t.trust.Supports(t.headline.limiter) })
	leavesOutAcks = fact("leavesOutAcks", "acknowledgements without data are left out of the capture", (*timeline).leftOut)
	wholeRounds   = fact("wholeRounds", "the capture's clock counts in steps longer than a round trip",
		func(t *timeline) bool { return t.coarse() && float64(t.c.Grain)/1e9 > t.baseRTT },
		threshold.CoarseGrain, threshold.CoarseSegments, threshold.CoarseShare)

	windowSeen = rule.Define("windowSeen", "the window is seen as the sender sees it",
		rule.All(rule.Not(inTheMiddle), rule.Not(isGuessedScale)))
	windowClear = rule.Define("windowClear", "only the window explains the rate",
		rule.All(rule.Not(windowAllowsMore), rule.Not(acksEven), rule.Not(tapUnknown)))
	// clearPauses are so long that at a tap at the sender nothing else explains them.
	clearPauses = rule.Define("clearPauses", "the pauses are long", rule.Any(rule.Not(pauseCount.Positive()),
		idleTime.AtLeast(threshold.ClearPause, pauseCount)))
	// needsRate is false where the evidence is an event. Only such has high confidence with few segments or rounds. An
	// ICMP message that the segment was too big comes with the losses of a black hole.
	needsRate = rule.Define("needsRate", "the evidence is a rate and not an event", rule.Not(rule.Any(
		rule.All(isBlackHole, rule.Any(blackHoleTime.Positive(), isOversized)),
		rule.All(limiterIs(verdict.Congestion), hasLostSYNs),
		rule.All(limiterIs(verdict.ReceiverWindow), hasNoUpdates),
		rule.All(limiterIs(verdict.ReceiverApplication), zeroWindows.Positive()))))
)

// limiterIs is a fact: the headline is that limiter.
func limiterIs(name verdict.Name) condition {
	return fact("limiter is "+string(name), "the headline", func(t *timeline) bool { return t.headline.limiter == name })
}

// level returns a rule on the confidence in a limiter's evidence.
func level(limiter verdict.Name, name string, when condition, c verdict.Confidence) rule.Level[*timeline] {
	return rule.Level[*timeline]{Limiter: limiter, Name: name, When: when, Confidence: c}
}

// levels are the rules on the confidence in a limiter's evidence: the first one of the limiter that applies.
var levels = []rule.Level[*timeline]{
	level(verdict.ReceiverWindow, "no-updates", isNoUpdates, verdict.High),
	// A window that shrank before the capture began looks full.
	level(verdict.ReceiverWindow, "scale-unknown", rule.Not(knowsScale), verdict.Low),
	level(verdict.ReceiverWindow, "window-clear", rule.All(windowSeen, windowClear), verdict.High),
	level(verdict.ReceiverWindow, "window-likely", rule.Any(windowSeen, windowClear), verdict.Medium),
	level(verdict.ReceiverWindow, "window-unclear", condition{}, verdict.Low),
	level(verdict.ReceiverApplication, "zero-windows", rule.All(zeroWindows.Positive(), knowsScale), verdict.High),
	// A send buffer under a lively other end looks like a program's window.
	level(verdict.Application, "program-window", isProgramWindow, verdict.Medium),
	level(verdict.Application, "clear-pauses", rule.All(atSender, clearPauses), verdict.High),
	// A queue of other traffic delays single acknowledgements too.
	level(verdict.NagleDelayedAck, "delayed-acks", rule.Not(rule.All(waitsBlockwise, timerAlone)), verdict.High),
	level(verdict.MTUBlackHole, "black-hole", condition{}, verdict.High),
	level(verdict.SlowStart, "start-unknown", rule.Not(knowsStart), verdict.Low),
	level(verdict.SlowStart, "last-round", isLastRound, verdict.High),
	level(verdict.Congestion, "lost-syns", rule.All(isLostSYNs, hasLostSYNs), verdict.High),
	level(verdict.Congestion, "lost-syns-unclear", isLostSYNs, verdict.Medium),
	// Late acknowledgements are no losses. A queue that never ran empty, as of a shared link, looks like a longer path.
	level(verdict.Congestion, "spurious-or-no-start", rule.Any(mostlySpurious, rule.Not(knowsHandshake)),
		verdict.Low),
	level(verdict.Congestion, "loss-without-queue", rule.All(queueMissing,
		capturedLossEvents.AtLeast(threshold.PolicedEvents), appLimitedRatio.Below(threshold.PausingShare)),
		verdict.High),
	level(verdict.Bottleneck, "only-even", isOnlyEven, verdict.Low),
	// A program that writes by a clock of its own is as fast over any faster line, though each write fills this one.
	level(verdict.Bottleneck, "standing-queue", rule.All(isQueueing, knowsScale, queueAhead, rule.Not(isPausing)),
		verdict.High),
	// So few losses may limit a congestion window as well.
	level(verdict.Sender, "segments-without-growth", rule.All(dataSegments.AtLeast(threshold.TransferSegments),
		rule.Not(isGrowing), rule.Not(lossMayHold)), verdict.Medium),
	level(verdict.Sender, "sender-unclear", condition{}, verdict.Low),
}

// steps lower the confidence in any limiter.
var steps = []rule.Step[*timeline]{
	{Name: "few-rounds-or-small-share", When: rule.Any(rule.All(capturedRounds.Below(threshold.FewRounds), needsRate,
		rule.Not(isSlowStart)), limiterShare.Below(threshold.ClearShare))},
	{Name: "untrusted", When: isUntrusted},
	{Name: "few-segments", When: rule.All(needsRate, rule.Any(capturedRounds.Below(threshold.SureRounds),
		newSegments.Below(threshold.SureSegments))), AtMost: verdict.Medium},
	{Name: "tap-or-clock", When: rule.Any(rule.All(tapUnknown, rule.Not(isBlackHole)), leavesOutAcks, wholeRounds),
		AtMost: verdict.Low},
}
