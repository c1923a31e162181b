package live

import (
	"maps"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Losing reports whether a connection's losses are among the limiters of its sending direction.
func Losing(v verdict.Verdict) bool {
	return v.Shares[verdict.Congestion] >= threshold.CandidateShare.Value && v.Subtype == ""
}

// OnSharedLink returns a connection's verdict after its congestion time is attributed to the shared link. The link's
// values are those of JudgeShared.
func OnSharedLink(v verdict.Verdict, of verdict.Values) verdict.Verdict {
	shares := maps.Clone(v.Shares)
	shares[verdict.Bottleneck] += shares[verdict.Congestion]
	delete(shares, verdict.Congestion)
	out := verdict.Headline(shares)
	switch out.Limiter {
	case verdict.Bottleneck:
		out.Confidence = verdict.Medium
	case verdict.Mixed: // the candidates are those of the new shares
	case v.Limiter:
		out.Confidence = v.Confidence
		out.Candidates = v.Candidates
	}
	out.Evidence = []verdict.Evidence{{Limiter: verdict.Bottleneck, Code: verdict.SharedLink, Values: of}}
	for _, e := range v.Evidence {
		if e.Limiter != verdict.Congestion && e.Limiter != verdict.Bottleneck {
			out.Evidence = append(out.Evidence, e)
		}
	}
	return out
}
