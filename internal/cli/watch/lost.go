package watch

import (
	"net/netip"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/drops"
	"github.com/fullpipe-net/fullpipe/internal/lost"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// losses are the drops of this host while it is watched.
type losses struct {
	watch *drops.Watch // nil: not available
	err   error
}

func watchLosses() *losses {
	l := &losses{}
	l.watch, l.err = drops.Open()
	return l
}

func (l *losses) close() { _ = l.watch.Close() } // nothing depends on it any more

// of returns the drops of a flow since the last call, as watch.Config's Losses.
func (l *losses) of(local, remote netip.AddrPort, d transfer.Direction) *transfer.Losses {
	if l.watch == nil {
		return nil
	}
	flow := lost.Flow{Source: local, Destination: remote}
	if d == transfer.Down {
		flow = lost.Flow{Source: remote, Destination: local}
	}
	found, err := l.watch.Take(flow, drops.AnyNamespace)
	if err != nil {
		return nil
	}
	return &found
}

// explain adds a note about the missing privilege to a document with retransmissions.
func (l *losses) explain(doc *record.Watch) {
	lossy := slices.ContainsFunc(doc.Connections, func(c record.WatchedConnection) bool {
		return slices.ContainsFunc(c.Directions,
			func(d record.WatchedDirection) bool { return d.RetransmittedBytes > 0 })
	})
	if note, is := report.NoPlacesOfLoss(l.err); is && lossy {
		doc.Unread = append(doc.Unread, note)
	}
}
