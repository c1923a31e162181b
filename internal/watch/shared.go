package watch

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// shared looks at connections to one host together, where what limits one of them is said to be its losses. On a
// link that several fill, each loses and has an unsteady rate; what they bring together is steady.
func (v *View) shared() {
	type pair struct{ from, to netip.Addr }
	groups := map[pair][]*Seen{}
	for i := range v.Seen {
		s := &v.Seen[i]
		if up := s.flow(transfer.Up); up != nil && up.Sampled {
			to := pair{s.Local.Addr(), s.Remote.Addr()}
			groups[to] = append(groups[to], s)
		}
	}
	for _, all := range groups {
		if len(all) > 1 && slices.ContainsFunc(all, (*Seen).losing) {
			shareLink(all)
		}
	}
}

// losing says that the connection's losses have a part in what limits what it sends.
func (s *Seen) losing() bool {
	v := s.flow(transfer.Up).Verdict
	return v.Shares[verdict.Congestion] >= threshold.CandidateShare && v.Subtype == ""
}

// shareLink gives the connections' part of losses to a link that all of them together fill.
func shareLink(all []*Seen) {
	watched := make([]live.Watched, len(all))
	for i, s := range all {
		watched[i] = s.watched(true)
	}
	of := live.JudgeShared(watched)
	if of == nil {
		return
	}
	for _, s := range all {
		if !s.losing() {
			continue
		}
		up := s.flow(transfer.Up)
		up.Verdict = ofShared(up.Verdict, of)
	}
}

// ofShared is a connection's verdict with its losses and its own view of the link given to the link that it shares.
func ofShared(v verdict.Verdict, of verdict.Values) verdict.Verdict {
	shares := maps.Clone(v.Shares)
	shares[verdict.Bottleneck] += shares[verdict.Congestion]
	delete(shares, verdict.Congestion)
	out := verdict.Headline(shares)
	switch out.Limiter {
	case verdict.Bottleneck:
		out.Confidence = verdict.Medium
	case verdict.Mixed: // of what there is now, by name
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
