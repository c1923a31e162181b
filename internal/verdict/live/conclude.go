package live

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// conclude makes the verdict from the time given away, with what supports it.
func (a *analysis) conclude() verdict.Verdict {
	v := verdict.Headline(a.shares())
	v.Evidence = a.evidence(v.Shares)
	switch v.Limiter {
	case verdict.ReceiverWindow:
		v.Subtype = a.windowSubtype()
	case verdict.NagleDelayedAck:
		if awaitsAckTimer.IsTrue(a.whole()) {
			v.Subtype = verdict.AckTimer
		}
	case a.network.name:
		v.Subtype = a.network.subtype
	}
	v.Confidence = a.confidence(&v)
	switch {
	case a.watched != nil && isWindowOrProgram(&v):
		v.Candidates = []verdict.Name{verdict.ReceiverWindow, verdict.ReceiverApplication}
	case v.Limiter == a.network.name && len(a.network.candidates) > 0:
		v.Candidates = slices.Clone(a.network.candidates)
	case v.Limiter == verdict.Mixed &&
		ratio(a.unknownTime[verdict.BetweenClosings], a.judged) >= threshold.CandidateShare.Value:
		for _, name := range a.candidates(verdict.BetweenClosings) {
			if !slices.Contains(v.Candidates, name) {
				v.Candidates = append(v.Candidates, name)
			}
		}
	case v.Limiter != verdict.Unknown:
	case a.mainQuestion() != "":
		v.Candidates = a.candidates(a.mainQuestion())
	default:
		v.Candidates = slices.Clone(unobservedCandidates)
		if a.network.code == verdict.LossWithoutCPU {
			v.Candidates = append(v.Candidates, verdict.CPU)
		}
	}
	return v
}

// isWindowOrProgram reports whether a sender cannot distinguish the peer's small window from a program that does not
// read.
func isWindowOrProgram(v *verdict.Verdict) bool {
	return (v.Limiter == verdict.ReceiverWindow || v.Limiter == verdict.ReceiverApplication) &&
		v.Subtype != verdict.Unscaled
}
