package farend

import (
	"github.com/fullpipe-net/fullpipe/internal/drops"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Losses are the drops of this host during a command's transfers.
type Losses struct {
	watch *drops.Watch // nil: not available
	err   error        // the reason
	end   func(*transfer.End, bool) *transfer.Losses
}

// WatchLosses follows this host's drops where the system and this process's privileges allow it.
func WatchLosses() *Losses {
	l := &Losses{}
	l.watch, l.err = drops.Open()
	l.Begin()
	return l
}

// Close ends it. Nothing depends on it any more, so its error does not matter.
func (l *Losses) Close() { _ = l.watch.Close() }

// Begin begins a transfer.
func (l *Losses) Begin() { l.end = l.watch.Begin() }

// Add adds this host's losses to the result of a transfer.
func (l *Losses) Add(r *transfer.Result) {
	if r != nil && r.Near != nil {
		r.Near.Losses = l.end(r.Near, r.Spec.Direction == transfer.Up)
	}
}

// Note adds a warning about a missing privilege to a lossy direction without places of loss.
func (l *Losses) Note(d *record.Direction) {
	note, is := report.NoPlacesOfLoss(l.err)
	if is && record.OrZero(d.RetransmittedSegment) > 0 && d.LostAt == nil {
		d.Warnings = append(d.Warnings, note.Text)
	}
}
