package limiter

import "github.com/fullpipe-net/fullpipe/internal/transfer"

const (
	fewRounds  = 5   // a verdict from fewer is one step less sure
	clearShare = 0.7 // and so is one whose limiter had less of the time
	// nearThreshold is how far a window each round trip may lie above the rate for the
	// window alone to explain it.
	nearThreshold = 1.15
	// clearlyFlat and clearlyUneven lie as far from flatRate on either side as the best
	// lasting rate is uncertain.
	clearlyFlat   = 0.94
	clearlyUneven = 0.82
)

// confidence is high only for direct evidence: the limiter's own clock or counter, from
// an end that was seen, and far from its threshold.
func (h *hearing) confidence(v Verdict) Confidence {
	if v.Limiter == Unknown || v.Limiter == Mixed {
		return Low
	}
	level := h.evidenceLevel(v.Limiter)
	rounds := 0
	for _, c := range h.connections {
		rounds += len(c.rounds)
	}
	if rounds < fewRounds || v.Shares[v.Limiter] < clearShare {
		level = lower(level)
	}
	return level
}

func (h *hearing) evidenceLevel(n Name) Confidence {
	c := h.connections[0]
	switch n {
	case h.network.name:
		return h.network.confidence
	case SlowStart:
		return High
	case CPU:
		return when(saturated(h.sender) || saturated(h.receiver), High)
	case Application:
		return when(c.has(transfer.HaveProgram|transfer.HaveLimits), High)
	case ReceiverApplication:
		return when(h.receiver != nil, High)
	case ReceiverWindow:
		return when(c.has(transfer.HaveSendWnd) && h.clear((*connection).window), High)
	case SendBuffer:
		return when(c.has(transfer.HaveProgram) && h.clear((*connection).outstanding), High)
	case NagleDelayedAck:
		return when(h.sum((*connection).awaited) > 0, High)
	case LocalQueue:
		return when(c.roomy >= headlineShare, High)
	case Pacing:
		return when(c.spec.PacingBps > 0, High)
	}
	return Medium
}

// clear says whether a whole window every round trip is what came.
func (h *hearing) clear(window func(*connection, *round) int64) bool {
	each := h.path.mean / float64(len(h.connections))
	return h.path.carries(h.typical(window)) <= nearThreshold*each
}

func when(direct bool, c Confidence) Confidence {
	if direct {
		return c
	}
	return lower(c)
}

func lower(c Confidence) Confidence {
	if c == High {
		return Medium
	}
	return Low
}
