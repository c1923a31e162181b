package watch

import (
	"net/netip"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// shared judges connections to one host together where one of them is limited by losses. On a link that several fill,
// each loses segments at an unsteady rate, but their sum is steady.
func (v *View) shared() {
	type pair struct{ from, to netip.Addr }
	groups := map[pair][]*Observed{}
	for i := range v.Connections {
		s := &v.Connections[i]
		if up := s.flow(transfer.Up); up != nil && up.Sampled {
			to := pair{s.Local.Addr(), s.Remote.Addr()}
			groups[to] = append(groups[to], s)
		}
	}
	for _, all := range groups {
		if len(all) > 1 && slices.ContainsFunc(all, (*Observed).losing) {
			shareLink(all)
		}
	}
}

// losing reports whether losses are part of the sender's limit.
func (s *Observed) losing() bool {
	v := s.flow(transfer.Up).Verdict
	return live.Losing(v)
}

// shareLink attributes the connections' losses to the link that they fill together.
func shareLink(all []*Observed) {
	windows := make([]*live.Watched, len(all))
	for i, s := range all {
		windows[i] = s.sampled(0)
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
		up.Verdict = live.OnSharedLink(up.Verdict, of)
	}
}
