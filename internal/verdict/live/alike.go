package live

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// alike is the window or buffer that would hold back what another one does hold back in the round, were
// that a tenth larger: a receive window behind a full send buffer, or the buffer behind the window. ""
// where there is none. Neither limits alone then.
func (c *connection) alike(r *round, full verdict.Name) verdict.Name {
	if !c.has(transfer.HaveProgram|transfer.HaveSendWnd|transfer.HaveNotSent) || c.outside {
		return ""
	}
	next := func(size, above int64) bool {
		return size > 0 && float64(above) < threshold.CauseFactor*float64(size)
	}
	switch {
	case full == verdict.SendBuffer && next(c.outstanding(r), c.window(r)):
		return verdict.ReceiverWindow
	case full == verdict.ReceiverWindow && c.waitsForSpace(r) && next(c.window(r), c.queued(r)):
		return verdict.SendBuffer
	}
	return ""
}

// waitsForSpace says that the writer mostly waits for room in the send buffer.
func (c *connection) waitsForSpace(r *round) bool {
	return c.blocked(r) >= time.Duration(threshold.MostlyWaiting*float64(r.length))
}

// queued is the most that the send buffer held in the round, sent or not.
func (c *connection) queued(r *round) (most int64) {
	for i := range r.samples {
		most = max(most, r.samples[i].Queued, r.samples[i].InFlight+r.samples[i].NotSent)
	}
	return most
}

// tellAlike is the evidence of it, where it is worth telling.
func (a *analysis) tellAlike() []verdict.Evidence {
	share := ratio(a.alike, a.total)
	if share < threshold.TellShare {
		return nil
	}
	return []verdict.Evidence{{Limiter: verdict.Mixed, Code: verdict.WindowsAlike, Values: verdict.Values{
		"time_ratio": share, "window_bytes": float64(a.typical((*connection).window)),
		"outstanding_bytes": float64(a.typical((*connection).outstanding))}}}
}
