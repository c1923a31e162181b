package measure

import (
	"errors"
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/bpf"
	"github.com/fullpipe-net/fullpipe/internal/drops"
	"github.com/fullpipe-net/fullpipe/internal/lost"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// losses are the drops of this host during transfers.
type losses struct {
	watch *drops.Watch // nil: not available
	err   error        // the reason
}

func watchLosses() *losses {
	l := &losses{}
	l.watch, l.err = drops.Open()
	return l
}

func (l *losses) close() { _ = l.watch.Close() } // nothing depends on it any more

// add adds the places of loss to a direction, or for a lossy transfer a note about the missing
// privilege.
func (l *losses) add(d *record.Direction, r *transfer.Result) {
	if r.Near == nil {
		return
	}
	lossy := record.OrZero(d.RetransmittedSegment) > 0
	switch {
	case lossy && errors.As(l.err, new(*bpf.NotPermittedError)):
		d.Warnings = append(d.Warnings, report.NoPlacesOfLoss().Text)
	case l.watch != nil:
		counts, err := l.counts(r)
		if err != nil {
			d.Warnings = append(d.Warnings, fmt.Sprintf("places of loss are not known: %v", err))
			return
		}
		var bytes *int64
		if d.RetransmittedSegment != nil {
			bytes = new(*d.RetransmittedSegment * int64(d.MSSBytes))
		}
		d.LostAt = report.LostAt(counts, d.Direction, d.MSSBytes, bytes)
	}
}

func (l *losses) counts(r *transfer.Result) (drops.Counts, error) {
	var all []drops.Counts
	for i := range r.Near.Streams {
		s := &r.Near.Streams[i]
		flow := lost.Flow{Source: s.Local, Destination: s.Remote}
		if r.Spec.Direction == transfer.Down {
			flow = lost.Flow{Source: s.Remote, Destination: s.Local}
		}
		c, err := l.watch.Of(flow, 0)
		if err != nil {
			return drops.Counts{}, err
		}
		all = append(all, c)
	}
	return drops.Sum(all), nil
}
