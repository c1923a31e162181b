package limiter

const (
	headlineShare = 0.5 // of the wall time
	headlineLead  = 2   // times the next share
	// nagleShare is enough for requests that Nagle's rule holds: they wait for their
	// answers too, and would without it.
	nagleShare = 0.4
)

// headline turns shares into a verdict without evidence: one limiter where it has half
// of the time and twice the next, else Mixed with the candidates.
func headline(shares Shares) Verdict {
	v := Verdict{Limiter: Unknown, Confidence: Low, Shares: shares}
	top := shares.Top()
	if len(top) == 0 {
		v.Shares = Shares{Unknown: 1}
		return v
	}
	next := 0.0
	if len(top) > 1 {
		next = shares[top[1]]
	}
	switch first := shares[top[0]]; {
	case first >= headlineShare && first >= headlineLead*next:
		v.Limiter = top[0]
		return v
	case shares[NagleDelayedAck] >= nagleShare:
		v.Limiter = NagleDelayedAck
		return v
	}
	v.Limiter = Mixed
	for _, n := range top {
		if shares[n] >= 0.1 && n != Unknown {
			v.Candidates = append(v.Candidates, n)
		}
	}
	return v
}

// unseen is the verdict where nothing could be looked at.
func unseen(why string, candidates ...Name) Verdict {
	return Verdict{Limiter: Unknown, Confidence: Low, Shares: Shares{Unknown: 1}, Candidates: candidates,
		Evidence: []Evidence{{Limiter: Unknown, Text: why}}}
}

// conclude makes the verdict from the time given away, with what supports it.
func (h *hearing) conclude() Verdict {
	v := headline(h.shares())
	v.Evidence = h.evidence(v.Shares)
	v.Confidence = h.confidence(v)
	switch v.Limiter {
	case ReceiverWindow:
		v.Subtype = h.connections[0].windowSubtype()
	case h.network.name:
		v.Subtype = h.network.subtype
	}
	if v.Limiter == Unknown {
		v.Candidates = []Name{Application, SendBuffer, ReceiverWindow, Congestion, Bottleneck}
	}
	return v
}
