package watch

import (
	"net/netip"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// way is the path of one direction of a connection.
type way struct{ from, to netip.AddrPort }

// addSenders keeps the sending ends on this host of what the view's connections receive, if they are not in the view.
func (v *View) addSenders(others []*Connection, a *Tracker) {
	wanted := map[way]bool{}
	for i := range v.Connections {
		if s := &v.Connections[i]; s.flow(transfer.Down) != nil {
			wanted[way{s.Remote, s.Local}] = true
		}
	}
	for _, c := range others {
		if wanted[way{c.Local, c.Remote}] {
			v.senders = append(v.senders, Observed{Connection: c, Flows: []Flow{a.flow(c, transfer.Up)}})
		}
	}
}

// bothEnds gives what arrives from a sender on this host, such as a container's, the verdict of that end, unless the
// receiving one is what limits. A pause of the sender looks like a queue there. Network namespaces may have the same
// addresses: two connections are each other's ends where no other fits and as many bytes came as went.
func (v *View) bothEnds() {
	senders := map[way][]*Flow{}
	for _, all := range [][]Observed{v.Connections, v.senders} {
		for i := range all {
			s := &all[i]
			if up := s.flow(transfer.Up); up != nil {
				of := way{s.Local, s.Remote}
				senders[of] = append(senders[of], up)
			}
		}
	}
	for i := range v.Connections {
		s := &v.Connections[i]
		down := s.flow(transfer.Down)
		if down == nil || down.Verdict.Limiter == verdict.ReceiverApplication ||
			down.Verdict.Limiter == verdict.ReceiverWindow {
			continue
		}
		from := senders[way{s.Remote, s.Local}]
		if len(from) != 1 || from[0].Verdict.Limiter == verdict.Unknown || !sameBytes(from[0].Bytes, down.Bytes) {
			continue
		}
		down.Verdict = from[0].Verdict
		down.Sampled = from[0].Sampled
		down.Verdict.Evidence = append([]verdict.Evidence{{Limiter: down.Verdict.Limiter, Code: verdict.SenderIsHere}},
			down.Verdict.Evidence...)
	}
}

func sameBytes(sent, received int64) bool {
	return float64(max(sent, received)) <= threshold.SameBytes*float64(min(sent, received))
}

// flow is the one of a direction; nil: nothing moved that way.
func (s *Observed) flow(d transfer.Direction) *Flow {
	if i := slices.IndexFunc(s.Flows, func(f Flow) bool { return f.Direction == d }); i >= 0 {
		return &s.Flows[i]
	}
	return nil
}
