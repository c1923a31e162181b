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

// Inputs of the rules on a captured direction.
var (
	limiterShare = &quantity{Name: "limiterShare", Unit: "ratio",
		Means: "share of the time of the limiter",
		Of:    func(t *timeline) float64 { return t.verdict.Shares[t.verdict.Limiter] }}
	capturedRounds = &quantity{Name: "capturedRounds", Unit: "rounds",
		Means: "round trips with data",
		Of:    func(t *timeline) float64 { return float64(t.rounds) }}
	newSegments = &quantity{Name: "newSegments", Unit: "segments",
		Means: "segments of new data; a super-segment counts as its packets",
		Of:    func(t *timeline) float64 { return float64(t.segments()) }}
	dataSegments = &quantity{Name: "dataSegments", Unit: "segments",
		Means: "segments with data, as captured",
		Of:    func(t *timeline) float64 { return float64(t.d.Segments) }}
	zeroWindows = &quantity{Name: "zeroWindows", Unit: "events",
		Means: "times at which the receive window closed",
		Of:    func(t *timeline) float64 { return float64(t.d.ZeroWindows) }}
	pauseCount = &quantity{Name: "pauseCount", Unit: "events",
		Means: "pauses with nothing outstanding",
		Of:    func(t *timeline) float64 { return float64(t.d.Pauses) }}
	idleTime = &quantity{Name: "capturedIdleTime", Unit: "time",
		Means: "time with nothing outstanding",
		Of:    func(t *timeline) float64 { return 1e9 * t.clock(flow.Idle) }}
	capturedLossEvents = &quantity{Name: "capturedLossEvents", Unit: "loss events",
		Means: "number of losses, each with those that follow in its round trip",
		Of:    func(t *timeline) float64 { return float64(t.d.LossEvents) }}
	appLimitedRatio = &quantity{Name: "appLimitedRatio", Unit: "ratio",
		Means: "share of the time in which the program had sent all",
		Of:    func(t *timeline) float64 { return t.clock(flow.AppLimited) / t.length }}
	blackHoleTime = &quantity{Name: "blackHoleTime", Unit: "s",
		Means: "time in which one large segment was lost again and again",
		Of:    func(t *timeline) float64 { return t.clock(flow.BlackHole) }}

	sliceCount = &quantity{Name: "sliceCount", Unit: "slices", Means: "slices of the timeline",
		Of: func(t *timeline) float64 { return float64(len(t.d.Slices)) }}
	lostSegments = &quantity{Name: "lostSegments", Unit: "segments",
		Means: "retransmitted segments that had not arrived",
		Of:    func(t *timeline) float64 { return float64(t.d.Retransmitted - t.d.Spurious) }}
	capturedTime = &quantity{Name: "capturedTime", Unit: "time", Means: "time of the direction",
		Of: func(t *timeline) float64 { return 1e9 * t.length }}
	emptyRTT = &quantity{Name: "emptyRTT", Unit: "time",
		Means: "round trip of a full segment over the empty path",
		Of:    func(t *timeline) float64 { return 1e9 * t.baseRTT }}
	synWait = &quantity{Name: "synWait", Unit: "time", Means: "time in which SYNs were lost",
		Of: func(t *timeline) float64 { return 1e9 * t.synWait() }}
	congestionTime = limiterTime("congestionTime", verdict.Congestion)
	windowTime     = limiterTime("windowTime", verdict.ReceiverWindow)
	unknownTime    = limiterTime("unknownTime", verdict.Unknown)
	// applicationTime contains the time of a sender that its program limits.
	applicationTime = &quantity{Name: "applicationTime", Unit: "time",
		Means: "time of the limiter application",
		Of:    func(t *timeline) float64 { return 1e9 * t.verdict.Shares[verdict.Application] * t.wall() }}
	waitedTime = &quantity{Name: "waitedTime", Unit: "time",
		Means: "time in which data or acknowledgements waited",
		Of:    func(t *timeline) float64 { return 1e9 * t.waitedTime }}
	unseenQueueTime = &quantity{Name: "unseenQueueTime", Unit: "time",
		Means: "time in which this tap does not see a queue",
		Of:    func(t *timeline) float64 { return 1e9 * t.unseenQueueTime }}
	stalledTime = &quantity{Name: "stalledTime", Unit: "time",
		Means: "time in which nothing got through",
		Of:    func(t *timeline) float64 { return float64(t.d.Stalled) }}
	clockSteps = &quantity{Name: "clockSteps", Unit: "events",
		Means: "times at which the capture's clock was set",
		Of:    func(t *timeline) float64 { return float64(t.c.ClockSteps) }}
	capturedBytes = &quantity{Name: "capturedBytes", Unit: "bytes", Means: "bytes of the direction",
		Of: func(t *timeline) float64 { return float64(t.d.Bytes) }}
	unseenBytes = &quantity{Name: "unseenBytes", Unit: "bytes",
		Means: "bytes that are not in the capture",
		Of:    func(t *timeline) float64 { return float64(t.d.Unseen) }}
	fullSegment = &quantity{Name: "fullSegment", Unit: "bytes", Means: "payload of a full segment",
		Of: func(t *timeline) float64 { return float64(t.d.MSS) }}
	largestWindow = &quantity{Name: "largestWindow", Unit: "bytes", Means: "largest receive window",
		Of: func(t *timeline) float64 { return float64(t.d.WindowMax) }}
	maxInFlight = &quantity{Name: "maxInFlight", Unit: "bytes", Means: "most bytes in flight",
		Of: func(t *timeline) float64 { return float64(t.d.MaxOut) }}
	flightLevel = &quantity{Name: "flightLevel", Unit: "bytes",
		Means: "bytes in flight with which half of the data was delivered or with fewer",
		Of:    func(t *timeline) float64 { return t.flightLevel }}

	exchanges = &quantity{Name: "exchanges", Unit: "exchanges",
		Means: "blocks of data that waited for a message of the other end",
		Of:    func(t *timeline) float64 { return float64(t.d.Exchanges) }}
	exchangeTime = &quantity{Name: "exchangeTime", Unit: "time",
		Means: "round trips of the exchanges",
		Of:    func(t *timeline) float64 { return 1e9 * t.baseRTT * float64(t.d.Exchanges) }}
	restarts = &quantity{Name: "restarts", Unit: "events",
		Means: "sending begun with nothing in flight",
		Of:    func(t *timeline) float64 { return float64(t.d.Restarts) }}
	messageRounds = &quantity{Name: "messageRounds", Unit: "rounds",
		Means: "round trips with a message of the other end",
		Of:    func(t *timeline) float64 { return float64(t.d.Spoken) }}
	silences = &quantity{Name: "silences", Unit: "time",
		Means: "silences of the sender within round trips",
		Of:    func(t *timeline) float64 { return float64(t.d.Silences) }}
	drainedTime = &quantity{Name: "drainedTime", Unit: "time",
		Means: "those at the end of its data",
		Of:    func(t *timeline) float64 { return float64(t.d.Drained) }}
	starts = &quantity{Name: "starts", Unit: "events", Means: "ends of silences",
		Of: func(t *timeline) float64 { return float64(t.starts().Count) }}
	promptedStarts = &quantity{Name: "promptedStarts", Unit: "events",
		Means: "ends of silences soon after a message of the other end",
		Of:    func(t *timeline) float64 { return float64(t.starts().Prompted) }}
	ownTime = &quantity{Name: "ownTime", Unit: "time",
		Means: "total time with no data in flight, before each start",
		Of:    func(t *timeline) float64 { return float64(t.starts().Own) }}
	startVariation = &quantity{Name: "startVariation", Unit: "ratio",
		Means: "deviation of the intervals between starts, as a share of their mean",
		Of:    func(t *timeline) float64 { return t.d.Starts.Variation() }}

	isRequestResponse = fact("isRequestResponse", "the subtype is request-response",
		func(t *timeline) bool { return t.verdict.Subtype == verdict.RequestResponse })
	isUnscaled = fact("isUnscaled", "the subtype is unscaled",
		func(t *timeline) bool { return t.verdict.Subtype == verdict.Unscaled })
	isProgramWindow = fact("isProgramWindow", "the subtype is program-window",
		func(t *timeline) bool { return t.verdict.Subtype == verdict.ProgramWindow })
	isLostSYNs = fact("isLostSYNs", "the subtype is lost-syns",
		func(t *timeline) bool { return t.verdict.Subtype == verdict.LostSYNs })
	isNoUpdates = fact("isNoUpdates", "the subtype is no-updates",
		func(t *timeline) bool { return t.verdict.Subtype == verdict.NoUpdates })
	isSlowStart = fact("isSlowStart", "the limiter is slow-start",
		func(t *timeline) bool { return t.verdict.Limiter == verdict.SlowStart })
	isBlackHole = fact("isBlackHole", "the limiter is mtu-black-hole",
		func(t *timeline) bool { return t.verdict.Limiter == verdict.MTUBlackHole })

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
	windowAllowsMore = fact("windowAllowsMore",
		"the largest window gives clearly more than the rate",
		(*timeline).windowAbove, threshold.WindowAbove)
	isLineBusy = fact("isLineBusy",
		"several segments or acknowledgements a window come at one pace, without pauses",
		func(t *timeline) bool { return t.lineBusy })
	acksEven = fact("acksEven", "acknowledgements come to the sender at one pace, without pauses",
		func(t *timeline) bool { return t.even })
	waitsBlockwise = fact("waitsBlockwise",
		"waits for the receiver's delayed-ACK timer are frequent",
		func(t *timeline) bool { return t.blockwise }, threshold.MinRounds, threshold.PausingShare)
	timerAlone = fact("timerAlone", "most waits have only one acknowledgement",
		func(t *timeline) bool { return 2*t.d.LoneTimerWaits > t.d.TimerWaits })
	isLastRound = fact("isLastRound", "no more than the last round trip was without growth",
		(*timeline).isLastRound, threshold.LastRound)
	hasLostSYNs = fact("hasLostSYNs", "SYNs were retransmitted without an answer",
		(*timeline).synsLost)
	mostlySpurious = fact("mostlySpurious", "most retransmitted segments had arrived",
		func(t *timeline) bool { return 2*t.d.Spurious > t.d.Retransmitted })
	queueMissing = fact("queueMissing", "a standing queue would have been seen and was not",
		(*timeline).queueMissing)
	queueAhead = fact("queueAhead",
		"a queue of acknowledgements would be distinguished from one of data",
		(*timeline).queueAhead)
	isQueueing = fact("isQueueing", "a standing queue was seen in much of the time",
		func(t *timeline) bool { return t.queueing })
	isPausing = fact("isPausing", "the program pauses",
		func(t *timeline) bool { return t.pausing }, threshold.PausingShare)
	isOnlyEven = fact("isOnlyEven", "only the even spacing of data shows a full link",
		(*timeline).onlyEven)
	isGrowing   = fact("isGrowing", "the bytes in flight grow", (*timeline).growing)
	lossMayHold = fact("lossMayHold", "losses allow hardly more than the rate",
		func(t *timeline) bool {
			allows := t.lossAllows()
			return allows != 0 && allows <= threshold.LossAllows.Value*t.goodput
		}, threshold.LossAllows)
	isOversized = fact("isOversized", "all segments longer than the MSS were lost",
		(*timeline).oversized)
	hasNoUpdates = fact("hasNoUpdates", "the window opens only in the answer to a probe",
		(*timeline).noUpdates)
	isUntrusted = fact("isUntrusted",
		"the capture does not support losses or times of the limiter",
		func(t *timeline) bool { return !t.trust.Supports(t.verdict.Limiter) })
	leavesOutAcks = fact("leavesOutAcks",
		"acknowledgements without data are left out of the capture", (*timeline).leftOut)
	isLosing = fact("isLosing", "losses are frequent enough to limit",
		func(t *timeline) bool { return t.losing }, threshold.Losing)
	isQueuedBeforeLoss = fact("isQueuedBeforeLoss",
		"most losses come after a queue of some packets, or at different bytes in flight",
		(*timeline).queuedBeforeLoss, threshold.PolicedQueue, threshold.PolicedPoints,
		threshold.PolicedWindows)
	hasSteadyRate = fact("hasSteadyRate",
		"the rate stays the same, or below that of the beginning after timeouts",
		(*timeline).steadyRate, threshold.PolicedEven, threshold.FirstBurst)
	losesAtOneWindow = fact("losesAtOneWindow",
		"after a burst, most losses begin at the same bytes in flight, and far more is lost than was queued",
		(*timeline).losesAtOneWindow, threshold.PolicedLosses, threshold.PolicedSpread, threshold.QueueOfLost,
		threshold.DeliveryBurst)
	isBlind = fact("isBlind", "a queue would be between the sender and the tap, where round trips do not show it",
		(*timeline).blind)
	isMarked = fact("isMarked",
		"marks (ECN) reduced the congestion window more often than losses did",
		func(t *timeline) bool { return t.marked && t.d.Marks > t.d.LossEvents },
		threshold.MinRounds)
	isDamaged = fact("isDamaged",
		"segments with a wrong TCP checksum arrive, and most losses may be theirs",
		(*timeline).damaged, threshold.MinSegments)
	isLostBehind = fact("isLostBehind",
		"the tap is at the receiver, and most retransmitted data had passed it before",
		(*timeline).lostBehind, threshold.MinSegments)
	isAvoiding = fact("isAvoiding",
		"without a loss, the bytes in flight grew by far less than a segment for each acknowledgement",
		func(t *timeline) bool { return t.avoiding }, threshold.AvoidanceGrowth)
	isIdleRestart = fact("isIdleRestart",
		"most of slow start's time followed an idle time (RFC 5681, 4.1)",
		func(t *timeline) bool { return 2*float64(t.d.IdleRestarts.SlowStart)/1e9 > t.clock(flow.SlowStart) })
	hasScaleMismatch = fact("hasScaleMismatch",
		"the windows are in another unit than the handshake agreed on",
		(*timeline).scaleMismatch)
	hasNoScale = fact("hasNoScale", "window scaling was not negotiated",
		func(t *timeline) bool { return t.d.NoScale })
	isBareSYNACK = fact("isBareSYNACK", "the SYN-ACK has no options but the MSS",
		func(t *timeline) bool { return t.c.BareSYNACK() })
	isConversing = fact("isConversing", "the other end sends more than messages",
		(*timeline).conversing, threshold.ProgramWindowResponses)
	levelLimits = fact("levelLimits",
		"flightLevel each round trip is no more than the path delivers, and less than twice the goodput",
		func(t *timeline) bool { return t.gives(t.flightLevel) })
	isRestarting = fact("isRestarting", "the sender pauses after each block",
		func(t *timeline) bool {
			return float64(t.d.Restarts) > (1-threshold.ExchangesRestart.Value)*float64(t.rounds)
		}, threshold.ExchangesRestart)
	staysLevel = fact("staysLevel", "the bytes in flight stay near flightLevel",
		(*timeline).staysLevel, threshold.FlatLong, threshold.FlatShare, threshold.HeadlineShare)
	staysNearMaxInFlight = fact("staysNearMaxInFlight",
		"the bytes in flight stay near their maximum", func(t *timeline) bool {
			took, _, _ := t.flat(float64(t.d.MaxOut))
			return took > threshold.FlatLong.Value*t.length
		}, threshold.FlatLong, threshold.FlatShare)
	hasEqualBlocks = fact("hasEqualBlocks",
		"blocks of one size are each released by the acknowledgement of the one before",
		(*timeline).equalBlocks, threshold.MinRounds)
	cutsSegments = fact("cutsSegments",
		"more segments than the last of a transfer are below the MSS",
		(*timeline).cutsSegments, threshold.SmallShare)
	timerAfterOneSegment = fact("windowHoldsTimer",
		"the window has room for one segment in most waits",
		func(t *timeline) bool { return 2*t.d.WindowTimerWaits > t.d.TimerWaits })
	isTimerOrLine = fact("isTimerOrLine",
		"a delayed-ACK timer or a slow line delays the only acknowledgement of a block in most of the time",
		func(t *timeline) bool { return t.unclear }, threshold.MinRounds, threshold.HeadlineShare)
	isLossOrLink = fact("isLossOrLink",
		"losses come at the rate of the path, and its empty round trip was not captured",
		func(t *timeline) bool { return t.evenLoss }, threshold.FilledWithin)
	isTimerInTrips = fact("isTimerInTrips", "a delayed-ACK timer may be a part of each round trip",
		(*timeline).timerInTrips, threshold.DelayedAckLeast, threshold.OneAckSegments)
	isSACKOutside = fact("isSACKOutside", "most SACK blocks lie outside the window",
		func(t *timeline) bool {
			return t.d.SACKOutside >= int64(threshold.MinSegments.Value) &&
				2*t.d.SACKOutside > t.d.SACKBlocks
		}, threshold.MinSegments)
	hasAbandoned = fact("hasAbandoned",
		"the sender did not retransmit what was not acknowledged in most of the time",
		func(t *timeline) bool { return float64(t.d.Abandoned)/1e9 > threshold.HeadlineShare.Value*t.length },
		threshold.HeadlineShare)
	isSilent = fact("isSilent", "the other end went silent",
		func(t *timeline) bool { return t.d.Silent > 0 })
	isCoarse = fact("isCoarse", "the capture's clock is too coarse for the round trip",
		(*timeline).coarse, threshold.CoarseGrain, threshold.CoarseSegments, threshold.CoarseShare)
	wholeRounds = fact("wholeRounds",
		"the capture's clock counts in steps longer than a round trip",
		func(t *timeline) bool { return t.coarse() && float64(t.c.Grain)/1e9 > t.baseRTT },
		threshold.CoarseGrain, threshold.CoarseSegments, threshold.CoarseShare)

	windowSeen = rule.Define("windowSeen", "the window is seen as the sender sees it",
		rule.All(rule.Not(inTheMiddle), rule.Not(isGuessedScale)))
	windowClear = rule.Define("windowClear", "only the window explains the rate",
		rule.All(rule.Not(windowAllowsMore), rule.Not(acksEven), rule.Not(tapUnknown)))
	// clearPauses are so long that at a tap at the sender nothing else explains them.
	clearPauses = rule.Define("clearPauses", "the pauses are long",
		rule.Any(rule.Not(pauseCount.Positive()),
			idleTime.AtLeast(threshold.ClearPause, pauseCount)))
	// needsRate is false where the evidence is an event. Only such has high confidence with few
	// segments or rounds. An ICMP message that the segment was too big comes with the losses of a
	// black hole.
	needsRate = rule.Define("needsRate", "the evidence is a rate and not an event",
		rule.Not(rule.Any(
			rule.All(isBlackHole, rule.Any(blackHoleTime.Positive(), isOversized)),
			rule.All(limiterIs(verdict.Congestion), hasLostSYNs),
			rule.All(limiterIs(verdict.ReceiverWindow), hasNoUpdates),
			rule.All(limiterIs(verdict.Sender), hasAbandoned),
			rule.All(limiterIs(verdict.ReceiverApplication), zeroWindows.Positive()))))
)

// limiterTime returns the quantity of the time of a limiter.
func limiterTime(name string, limiter verdict.Name) *quantity {
	return &quantity{Name: name, Unit: "time", Means: "time of the limiter " + string(limiter),
		Of: func(t *timeline) float64 { return 1e9 * t.time[limiter] }}
}

// limiterIs is a fact: the headline is that limiter.
func limiterIs(name verdict.Name) condition {
	return fact("limiter is "+string(name), "the headline",
		func(t *timeline) bool { return t.verdict.Limiter == name })
}
