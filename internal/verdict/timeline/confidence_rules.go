package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

type confidenceRule = rule.Case[*timeline, verdict.Confidence]

// level returns a rule on the confidence in a limiter's evidence.
func level(limiter verdict.Name, name string, when condition, c verdict.Confidence) confidenceRule {
	return confidenceRule{Limiter: limiter, Name: name, When: when, Then: c}
}

// levels are the rules on the confidence in a limiter's evidence: the first one of the limiter that applies.
var levels = []confidenceRule{
	level(verdict.ReceiverWindow, "no-updates", isNoUpdates, verdict.High),
	// A window that shrank before the capture began looks full.
	level(verdict.ReceiverWindow, "scale-unknown", rule.Not(knowsScale), verdict.Low),
	// A full line and a window just above its bandwidth-delay product.
	level(verdict.ReceiverWindow, "line-busy", isLineBusy, verdict.Low),
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
	level(verdict.Sender, "abandoned", hasAbandoned, verdict.High),
	// The window is emptied and filled again between two segments that the tap sees.
	level(verdict.Sender, "window-also-full", windowTime.AtLeast(threshold.CandidateShare, capturedTime), verdict.Low),
	// So few losses may limit a congestion window as well.
	level(verdict.Sender, "segments-without-growth", rule.All(dataSegments.AtLeast(threshold.TransferSegments),
		rule.Not(isGrowing), rule.Not(lossMayHold)), verdict.Medium),
	level(verdict.Sender, "sender-unclear", condition{}, verdict.Low),
}

// steps lower the confidence in any limiter.
var steps = []rule.Step[*timeline]{
	{Name: "few-rounds-or-small-share", When: rule.Any(rule.All(capturedRounds.Below(threshold.MinRounds), needsRate,
		rule.Not(isSlowStart)), limiterShare.Below(threshold.ClearShare))},
	{Name: "untrusted", When: isUntrusted},
	{Name: "few-segments", When: rule.All(needsRate, rule.Any(capturedRounds.Below(threshold.SureRounds),
		newSegments.Below(threshold.SureSegments))), AtMost: verdict.Medium},
	{Name: "tap-or-clock", When: rule.Any(rule.All(tapUnknown, rule.Not(isBlackHole)), leavesOutAcks, wholeRounds),
		AtMost: verdict.Low},
}
