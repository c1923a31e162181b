package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// subtype is the reason for a limiter.
type subtype struct {
	name string
	of   verdict.Name // the limiter that it makes the headline; "": the same
}

// String returns the subtype as the rules print it.
func (s subtype) String() string {
	if s.of == "" {
		return s.name
	}
	return s.name + " of the limiter " + string(s.of)
}

type (
	subtypeRule   = rule.Case[*timeline, subtype]
	candidateRule = rule.Case[*timeline, []verdict.Name]
)

// reason returns a rule on a limiter's subtype.
func reason(limiter verdict.Name, name string, when condition) subtypeRule {
	return subtypeRule{Limiter: limiter, Name: name, When: when, Then: subtype{name: name}}
}

// ownProgram returns the rule that its program limits a sender which no window limits.
func ownProgram(name string, when condition) subtypeRule {
	return subtypeRule{Limiter: verdict.Sender, Name: "sender-" + name, When: when,
		Then: subtype{name, verdict.Application}}
}

// leaves returns a rule on the candidates of a limiter, the likeliest first.
func leaves(limiter verdict.Name, name string, when condition, all ...verdict.Name) candidateRule {
	return candidateRule{Limiter: limiter, Name: name, When: when, Then: all}
}

// Conditions of subtypes and candidates.
var (
	// A shaper's queue precedes its losses; random losses have no rate of their own.
	isPoliced = rule.Define("isPoliced",
		"losses of several segments without a queue before them, at the same bytes in flight and a steady rate",
		rule.All(capturedLossEvents.AtLeast(threshold.PolicedEvents), rule.Not(isQueueing), rule.Not(isBlind),
			sliceCount.AtLeast(threshold.PolicedSlices),
			lostSegments.AtLeast(threshold.LossInBursts, capturedLossEvents),
			rule.Not(isQueuedBeforeLoss), rule.Any(hasSteadyRate, losesAtOneWindow)))
	synsDominate = rule.Define("synsDominate",
		"lost SYNs, and not a congestion window, took most of congestion's time",
		synWait.Above(threshold.HeadlineShare, congestionTime))

	isClocked = rule.Define("isClocked",
		"blocks start at equal intervals, and the wait for the other end is only a part of each",
		rule.All(startVariation.Below(threshold.ClockedVariation),
			ownTime.Above(threshold.OwnTime, capturedTime)))
	// exchanging: the round trips of exchanges are most of the time.
	exchanging = rule.Define("exchanging",
		"blocks of data each wait for a message of the other end",
		rule.All(exchanges.AtLeast(threshold.MinRounds), emptyRTT.Positive(),
			exchanges.AtLeast(threshold.ExchangesRestart, restarts), rule.Not(isClocked),
			exchangeTime.Above(threshold.ExchangesWait, capturedTime)))
	isUnprompted = rule.Define("isUnprompted",
		"most silences end without a message of the other end",
		rule.All(starts.AtLeast(threshold.MinRounds),
			rule.Not(promptedStarts.AtLeast(threshold.Prompted, starts))))
	// takesTurns: as requests to a file server. The sender falls silent within most round trips,
	// each time at the end of its data, and goes on after a message.
	takesTurns = rule.Define("takesTurns",
		"blocks are in flight, and each waits for the answer to an earlier one",
		rule.All(silences.Above(threshold.PausingShare, capturedTime),
			drainedTime.Above(threshold.ExchangesRestart, silences)))
	hasProgramWindow = rule.Define("hasProgramWindow",
		"the bytes in flight stay at a level below the receive window, while messages of the other end let them go on",
		rule.All(capturedRounds.AtLeast(threshold.MinRounds), rule.Not(isLosing),
			largestWindow.AtLeast(threshold.ProgramWindowRoom, flightLevel),
			flightLevel.AtLeast(threshold.ProbeSegments, fullSegment), rule.Not(isConversing),
			levelLimits,
			rule.Not(isUnprompted), rule.Any(takesTurns,
				rule.All(messageRounds.AtLeast(threshold.ExchangesRestart, capturedRounds),
					rule.Not(isRestarting),
					staysLevel))))

	sendsBlocks = rule.Define("sendsBlocks",
		"the sender sends blocks, or its silences show that nothing paces it",
		rule.Any(hasEqualBlocks, staysNearMaxInFlight,
			silences.Above(threshold.PausingShare, capturedTime)))
	idleDominates = rule.Define("idleDominates", "nothing was outstanding in most of the time",
		idleTime.Above(threshold.HeadlineShare, capturedTime))
	waitingDominates = rule.Define("waitingDominates",
		"data or acknowledgements waited in most of the time that has no other cause",
		waitedTime.Above(threshold.HeadlineShare, unknownTime))
	isQueueUnseen = rule.Define("isQueueUnseen",
		"the tap would not see a queue in most of the time that has no other cause",
		unseenQueueTime.Above(threshold.HeadlineShare, unknownTime))
)

// subtypes are the rules on the reason for a limiter: the first one of the limiter that applies.
var subtypes = []subtypeRule{
	reason(verdict.ReceiverWindow, verdict.ScaleMismatch, hasScaleMismatch),
	reason(verdict.ReceiverWindow, verdict.NoUpdates, hasNoUpdates),
	windowReason(verdict.Unscaled,
		"window scaling was not negotiated, and the window is as large as it can be without"),
	windowReason(verdict.ScaleZero,
		"the scale is 0, and the window is as large as it can be with it"),
	windowReason(verdict.AutotuneGrowing, "the window still grows"),
	windowReason(verdict.AutotuneCeiling, "the window grew to the maximum of its scale or of an unscaled one"),
	reason(verdict.ReceiverWindow, verdict.Fixed, condition{}),
	reason(verdict.Congestion, verdict.LostSYNs, synsDominate),
	reason(verdict.Congestion, verdict.Damaged, isDamaged),
	reason(verdict.Congestion, verdict.ReceiverDrops, isLostBehind),
	reason(verdict.Congestion, verdict.Policer, isPoliced),
	reason(verdict.Congestion, verdict.Marked, isMarked),
	reason(verdict.Congestion, verdict.LowSsthresh, isAvoiding),
	reason(verdict.MTUBlackHole, verdict.Oversized, isOversized),
	reason(verdict.SlowStart, verdict.IdleRestart, isIdleRestart),
	reason(verdict.NagleDelayedAck, verdict.AckTimer, waitsBlockwise),
	reason(verdict.Application, verdict.RequestResponse, exchanging),
	reason(verdict.Application, verdict.ProgramWindow, hasProgramWindow),
	ownProgram(verdict.RequestResponse, rule.All(exchanging, rule.Not(hasAbandoned))),
	ownProgram(verdict.ProgramWindow, rule.All(hasProgramWindow, rule.Not(hasAbandoned))),
}

// windowReason returns a rule on a receive window's subtype.
func windowReason(name, means string) subtypeRule {
	return reason(verdict.ReceiverWindow, name, fact("window is "+name, means,
		func(t *timeline) bool { return t.windowFacts().Subtype() == name },
		threshold.UnscaledMax, threshold.UnscaledNear, threshold.ScaledNear, threshold.WindowGrows,
		threshold.CeilingMin))
}

// candidates are the possible limiters of a sender that has room in every window, and those of most
// of the unknown time: the first rule of the limiter that applies.
var candidates = []candidateRule{
	leaves(verdict.Sender, "abandoned", hasAbandoned),
	leaves(verdict.Sender, "small-segments", rule.All(cutsSegments, rule.Not(hasEqualBlocks)),
		verdict.Application,
		verdict.SendBuffer, verdict.Pacing, verdict.LocalQueue, verdict.CPU, verdict.Congestion),
	leaves(verdict.Sender, "blocks", sendsBlocks, verdict.SendBuffer, verdict.Pacing,
		verdict.Application,
		verdict.LocalQueue, verdict.CPU, verdict.Congestion),
	leaves(verdict.Sender, "paced", condition{}, verdict.Pacing, verdict.Application,
		verdict.SendBuffer,
		verdict.LocalQueue, verdict.CPU, verdict.Congestion),
	leaves(verdict.Unknown, "timer-or-line", isTimerOrLine, verdict.NagleDelayedAck,
		verdict.Bottleneck),
	leaves(verdict.Unknown, "idle-or-loss", idleDominates, verdict.Application, verdict.Congestion),
	leaves(verdict.Unknown, "waits-somewhere", waitingDominates, verdict.AckPath,
		verdict.Bottleneck),
	leaves(verdict.Unknown, "loss-or-link", isLossOrLink, verdict.Bottleneck, verdict.Congestion),
	leaves(verdict.Unknown, "queue-unseen", isQueueUnseen, verdict.Bottleneck, verdict.Sender,
		verdict.ReceiverWindow),
	leaves(verdict.Unknown, "timer-in-round-trips", isTimerInTrips, verdict.Sender,
		verdict.ReceiverWindow,
		verdict.Congestion, verdict.NagleDelayedAck),
	leaves(verdict.Unknown, "no-sign", condition{}, verdict.Sender, verdict.ReceiverWindow,
		verdict.Congestion),
}

// furtherCandidates are added to those of candidates by every rule that applies.
var furtherCandidates = []candidateRule{
	// Late acknowledgements look like a late sender.
	leaves(verdict.Sender, "late-acknowledgements", rule.Not(atSender), verdict.AckPath),
}
