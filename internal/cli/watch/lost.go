package watch

import (
	"net/netip"

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

// add adds the places of loss to a document's connections, or a note about the missing privilege.
func (l *losses) add(doc *record.Watch) {
	lossy := false
	for i := range doc.Connections {
		c := &doc.Connections[i]
		local, err := netip.ParseAddrPort(c.Local)
		remote, failed := netip.ParseAddrPort(c.Remote)
		if err != nil || failed != nil {
			continue
		}
		for j := range c.Directions {
			d := &c.Directions[j]
			lossy = lossy || d.RetransmittedBytes > 0
			flow := lost.Flow{Source: local, Destination: remote}
			if d.Direction == transfer.Down {
				flow = lost.Flow{Source: remote, Destination: local}
			}
			if l.watch == nil {
				continue
			}
			found, err := l.watch.Of(flow, drops.AnyNamespace)
			if err != nil {
				continue
			}
			losses := report.Losses{Receiver: &found}
			if d.Direction == transfer.Up {
				losses = report.Losses{Sender: &found}
			}
			d.LostAt = losses.LostAt()
		}
	}
	if note, is := report.NoPlacesOfLoss(l.err); is && lossy {
		doc.Unread = append(doc.Unread, note)
	}
}
