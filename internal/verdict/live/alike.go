package live

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// equalLimit returns the window or buffer that would limit if the one that limits the round were a tenth larger: the
// receive window behind a full send buffer, or the reverse. Neither limits alone then. It returns "" if there is none.
func (c *connection) equalLimit(r *round, full verdict.Name) verdict.Name {
	if !c.has(transfer.HaveProgram | transfer.HaveSendWnd | transfer.HaveNotSent) {
		return ""
	}
	next := func(size, above int64) bool {
		return size > 0 && float64(above) < threshold.CauseFactor.Value*float64(size)
	}
	switch {
	case full == verdict.SendBuffer && next(c.outstanding(r), c.window(r)):
		return verdict.ReceiverWindow
	case full == verdict.ReceiverWindow && c.waitsForSpace(r) && next(c.window(r), c.queued(r)):
		return verdict.SendBuffer
	}
	return ""
}

// waitsForSpace reports whether the writer mostly waits for space in the send buffer.
func (c *connection) waitsForSpace(r *round) bool {
	return c.blocked(r) >= time.Duration(threshold.MostlyWaiting.Value*float64(r.length))
}

// queued returns the largest number of bytes in the send buffer in the round, sent or not.
func (c *connection) queued(r *round) (most int64) {
	for i := range r.samples {
		most = max(most, r.samples[i].Queued, r.samples[i].InFlight+r.samples[i].NotSent)
	}
	return most
}

// equalWindows returns the evidence of equal limits, from a share of the time on that is worth telling.
func (a *analysis) equalWindows() []verdict.Evidence {
	share := ratio(a.equalTime, a.total)
	if share < threshold.EvidenceShare.Value {
		return nil
	}
	return []verdict.Evidence{{Limiter: verdict.Mixed, Code: verdict.EqualWindows, Values: verdict.Values{
		"time_ratio": share, "window_bytes": float64(a.median((*connection).window)),
		"outstanding_bytes": float64(a.median((*connection).outstanding))}}}
}
