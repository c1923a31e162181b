package watch

import (
	"net/netip"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
	"github.com/fullpipe-net/fullpipe/internal/verdict/watched"
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
	return watched.Losing(v)
}

// shareLink gives the connections' part of losses to a link that all of them together fill.
func shareLink(all []*Seen) {
	windows := make([]live.Watched, len(all))
	for i, s := range all {
		windows[i] = s.sampled().Live(true)
	}
	of := live.JudgeShared(windows)
	if of == nil {
		return
	}
	for _, s := range all {
		if !s.losing() {
			continue
		}
		up := s.flow(transfer.Up)
		up.Verdict = watched.OnSharedLink(up.Verdict, of)
	}
}
