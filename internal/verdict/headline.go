package verdict

import "github.com/fullpipe-net/fullpipe/internal/verdict/threshold"

// Headline turns shares into a verdict without evidence: one limiter where it has half
// of the time and twice the next, else Mixed with the candidates.
func Headline(shares Shares) Verdict {
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
	case first >= threshold.HeadlineShare.Value && first >= threshold.HeadlineLead.Value*next:
		v.Limiter = top[0]
		return v
	case shares[NagleDelayedAck] >= threshold.NagleShare.Value:
		v.Limiter = NagleDelayedAck
		return v
	}
	v.Limiter = Mixed
	for _, n := range top {
		if shares[n] >= threshold.CandidateShare.Value && n != Unknown {
			v.Candidates = append(v.Candidates, n)
		}
	}
	return v
}

// Unobserved returns the verdict without any measurement. why names the missing data.
func Unobserved(why Evidence, candidates ...Name) Verdict {
	why.Limiter = Unknown
	return Verdict{Limiter: Unknown, Confidence: Low, Shares: Shares{Unknown: 1}, Candidates: candidates,
		Evidence: []Evidence{why}}
}

// LowerUnless is c for direct evidence and one step less without.
func LowerUnless(direct bool, c Confidence) Confidence {
	if direct {
		return c
	}
	return Lower(c)
}

// Lower is one step less sure; Low stays.
func Lower(c Confidence) Confidence {
	if c == High {
		return Medium
	}
	return Low
}
