package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// finding is the code of an evidence and the function that adds its values.
type finding struct {
	code   verdict.Code
	values func(*timeline, verdict.Values) // nil: none
}

// String returns the code.
func (f finding) String() string { return string(f.code) }

type evidenceRule = rule.Case[*timeline, finding]

// support returns a rule on the evidence for a limiter.
func support(limiter verdict.Name, code verdict.Code, when condition,
	values func(*timeline, verdict.Values)) evidenceRule {
	return evidenceRule{Limiter: limiter, Name: string(code), When: when,
		Then: finding{code, values}}
}

// Conditions of evidence.
var (
	lossSilenceDominates = rule.Define("lossSilenceDominates",
		"losses before the tap look like a program that has nothing to send",
		rule.All(isLosing, rule.Not(atSender), idleDominates))
	hasGaps = rule.Define("hasGaps", "too much data is not in the capture",
		unseenBytes.Above(threshold.UnreliableCapture, capturedBytes))
	isBeyondUnscaled = rule.Define("isBeyondUnscaled",
		"more was in flight than most unscaled windows hold",
		maxInFlight.Above(threshold.UnscaledReported))
	windowLimited = rule.Define("windowLimited",
		"a full receive window limited in some of the time",
		windowTime.Positive())
)

// supports are the rules on the evidence for a limiter: the first one of the limiter that applies.
var supports = []evidenceRule{
	support(verdict.ReceiverWindow, verdict.CapturedNoUpdates, hasNoUpdates,
		(*timeline).describeProbes),
	support(verdict.ReceiverWindow, verdict.CapturedWindowFull, condition{},
		(*timeline).describeWindow),
	support(verdict.ReceiverApplication, verdict.CapturedWindowClosed, condition{},
		(*timeline).describeClosed),
	support(verdict.Application, verdict.CapturedExchanges, isRequestResponse,
		(*timeline).describeExchanges),
	support(verdict.Application, verdict.CapturedProgramWindow, isProgramWindow,
		(*timeline).describeProgramWindow),
	support(verdict.Application, verdict.CapturedIdle,
		idleTime.Above(threshold.IdleOfApplication, applicationTime),
		(*timeline).describeIdle),
	support(verdict.Application, verdict.CapturedStopAndWait, condition{}, nil),
	support(verdict.NagleDelayedAck, verdict.WindowAwaitsAckTimer,
		rule.All(waitsBlockwise, timerAfterOneSegment),
		(*timeline).describeWindowTimer),
	support(verdict.NagleDelayedAck, verdict.CapturedAckTimer, waitsBlockwise,
		(*timeline).describeTimer),
	support(verdict.NagleDelayedAck, verdict.CapturedNagle, condition{}, (*timeline).describeNagle),
	support(verdict.MTUBlackHole, verdict.CapturedOversized, isOversized,
		(*timeline).describeOversized),
	support(verdict.MTUBlackHole, verdict.CapturedBlackHole, condition{},
		(*timeline).describeBlackHole),
	support(verdict.SlowStart, verdict.CapturedIdleRestart, isIdleRestart,
		(*timeline).describeRestarts),
	support(verdict.SlowStart, verdict.CapturedSlowStart, condition{},
		(*timeline).describeSlowStart),
	support(verdict.Congestion, verdict.CapturedLostSYNs, synsDominate,
		(*timeline).describeLostSYNs),
	support(verdict.Congestion, verdict.CapturedMarks, isMarked, (*timeline).describeMarks),
	support(verdict.Congestion, verdict.CapturedAvoidance, isAvoiding,
		(*timeline).describeAvoidance),
	support(verdict.Congestion, verdict.CapturedLoss, condition{}, (*timeline).describeLoss),
	support(verdict.Bottleneck, verdict.CapturedFullLink, condition{}, (*timeline).describeLink),
	support(verdict.AckPath, verdict.CapturedAckQueue, condition{}, (*timeline).describeRTTs),
	support(verdict.Sender, verdict.CapturedAbandoned, hasAbandoned, (*timeline).describeAbandoned),
	support(verdict.Sender, verdict.CapturedSenderWaits, condition{}, (*timeline).describeSender),
	support(verdict.Unknown, verdict.CapturedTimerOrLine, isTimerOrLine,
		(*timeline).describeUnclear),
	support(verdict.Unknown, verdict.CapturedIdleOrLoss, lossSilenceDominates,
		(*timeline).describeIdle),
	support(verdict.Unknown, verdict.CapturedGaps, hasGaps, (*timeline).describeUnseen),
	support(verdict.Unknown, verdict.CapturedWaitsSomewhere, waitingDominates,
		(*timeline).describeEmptyRTT),
	support(verdict.Unknown, verdict.CapturedLossOrLink, isLossOrLink,
		(*timeline).describeUnknownRate),
	support(verdict.Unknown, verdict.CapturedQueueUnseen, isQueueUnseen,
		(*timeline).describeUnknownRate),
	support(verdict.Unknown, verdict.CapturedNoHandshake, rule.Not(knowsScale),
		(*timeline).describeScale),
	support(verdict.Unknown, verdict.CapturedNoSign, condition{}, nil),
}

// caveats lower the worth of a verdict, or say more about it: every rule that applies.
var caveats = []evidenceRule{
	support(verdict.Congestion, verdict.CapturedDamaged, isDamaged, (*timeline).describeDamaged),
	support(verdict.Congestion, verdict.CapturedLostBehind,
		rule.All(limiterIs(verdict.Congestion), isLostBehind),
		(*timeline).describeLostBehind),
	support(verdict.SendBuffer, verdict.CapturedBlocks, rule.All(hasEqualBlocks,
		rule.Any(limiterIs(verdict.Sender), limiterIs(verdict.Bottleneck))),
		(*timeline).describeBlocks),
	support(verdict.Congestion, verdict.CapturedLostSYNs,
		rule.All(synWait.Positive(), rule.Not(synsDominate)),
		(*timeline).describeLostSYNs),
	support(verdict.Congestion, verdict.CapturedSACKOutside, isSACKOutside,
		(*timeline).describeSACK),
	support(verdict.ReceiverWindow, verdict.CapturedUnscaled, rule.All(hasNoScale, rule.Any(
		rule.All(limiterIs(verdict.ReceiverWindow), rule.Not(isUnscaled)),
		rule.All(rule.Not(windowLimited), isBeyondUnscaled))), nil),
	support(verdict.ReceiverWindow, verdict.CapturedScaleMismatch,
		rule.All(windowLimited, hasScaleMismatch),
		(*timeline).describeMismatch),
	support(verdict.ReceiverWindow, verdict.CapturedBareSynAck, rule.All(hasNoScale, isBareSYNACK,
		rule.Any(windowLimited, isBeyondUnscaled)), nil),
	support(verdict.Unknown, verdict.CapturedFewGaps,
		rule.All(unseenBytes.Positive(), rule.Not(hasGaps)),
		func(t *timeline, v verdict.Values) { v["missing_bytes"] = float64(t.d.Unseen) }),
	support(verdict.Unknown, verdict.CapturedSilent, isSilent, (*timeline).describeSilence),
	support(verdict.Congestion, verdict.CapturedOutage,
		rule.All(rule.Not(isSilent), stalledTime.Positive()),
		(*timeline).describeOutage),
	support(verdict.Unknown, verdict.CapturedCoarseClock, isCoarse, (*timeline).describeClock),
	support(verdict.Unknown, verdict.CapturedClockSteps, clockSteps.Positive(),
		func(t *timeline, v verdict.Values) { v["steps"] = float64(t.c.ClockSteps) }),
}
