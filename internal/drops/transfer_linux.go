package drops

import (
	"net/netip"

	"github.com/fullpipe-net/fullpipe/internal/lost"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Begin begins a transfer. end returns the losses of its streams at one end of this host, and
// forgets them: later connections may have the same addresses. It returns nil if they are not
// known.
func (w *Watch) Begin() (end func(e *transfer.End, sends bool) *transfer.Losses) {
	of := w.begin(false)
	return func(e *transfer.End, sends bool) *transfer.Losses {
		if e == nil {
			return nil
		}
		var flows []lost.Flow
		for i := range e.Streams {
			flows = append(flows, flowOf(e.Streams[i].Local, e.Streams[i].Remote, sends))
		}
		return of(flows)
	}
}

// BeginDatagrams is like Begin for a transfer by UDP.
func (w *Watch) BeginDatagrams() (end func(r *transfer.DatagramResult) *transfer.Losses) {
	of := w.begin(true)
	return func(r *transfer.DatagramResult) *transfer.Losses {
		var flows []lost.Flow
		for _, pair := range r.Flows {
			f := flowOf(pair.Local, pair.Remote, r.Spec.Direction == transfer.Up)
			f.UDP = true
			flows = append(flows, f)
		}
		return of(flows)
	}
}

// flowOf returns the direction of a connection in which this end sends or receives.
func flowOf(local, remote netip.AddrPort, sends bool) lost.Flow {
	if sends {
		return lost.Flow{Source: local, Destination: remote}
	}
	return lost.Flow{Source: remote, Destination: local}
}

func (w *Watch) begin(udp bool) func([]lost.Flow) *transfer.Losses {
	if w == nil || w.udp != udp {
		return func([]lost.Flow) *transfer.Losses { return nil }
	}
	before, failed := w.missed()
	return func(flows []lost.Flow) *transfer.Losses {
		if failed != nil {
			return nil
		}
		var all transfer.Losses
		for _, flow := range flows {
			found, err := w.read(flow)
			if err != nil {
				return nil
			}
			all.Add(w.losses(found, 0))
		}
		after, err := w.missed()
		if err != nil {
			return nil
		}
		all.Incomplete = after > before
		return &all
	}
}
