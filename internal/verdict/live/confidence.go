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
	if v.Limiter != verdict.CPU && a.hostLate() {
		level = verdict.Lower(level)
	}
	if len(a.memoryValues()) > 0 {
		// A kernel that is short of memory closes windows and drops what came: as a slow
		// reader, a small window or a lossy path would.
		level = verdict.Lower(level)
	}
	return level
}

// hostLate says that a data thread at either end was ready without a core for so long that
// what was measured is partly the host's.
func (a *analysis) hostLate() bool {
	for _, e := range []*transfer.End{a.sender, a.receiver} {
		if e != nil && e.CPU != nil && e.CPU.ThreadRunDelay >= threshold.RunDelay {
			return true
		}
	}
	return false
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
		return verdict.When(c.has(transfer.HaveSendWnd) && a.clear((*connection).window), verdict.High)
	case verdict.SendBuffer:
		return verdict.When(c.has(transfer.HaveProgram) && a.clear((*connection).outstanding), verdict.High)
	case verdict.NagleDelayedAck:
		return verdict.When(a.sum((*connection).awaited) > 0, verdict.High)
	case verdict.LocalQueue:
		return verdict.When(c.unsent >= threshold.HeadlineShare, verdict.High)
	case verdict.Pacing:
		return verdict.When(c.spec.PacingBps > 0, verdict.High)
	}
	return verdict.Medium
}

// clear says whether a whole window every round trip is what came.
func (a *analysis) clear(window func(*connection, *round) int64) bool {
	each := a.path.mean / float64(len(a.connections))
	return a.path.carries(a.typical(window)) <= threshold.WindowClearlyLimits*each
}
