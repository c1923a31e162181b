package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/verdict/trust"
)

// trustOf returns whether losses and times of this direction can be relied on.
func (t *timeline) trustOf() trust.Trust {
	d := t.d
	f := trust.Direction{
		OneWay: t.oneWay() || len(d.Slices) == 0 && d.Unseen > 0,
		Bytes:  d.Bytes, Missing: d.Unseen + d.Missing,
		Segments: t.c.Segments, Duplicates: t.c.Duplicates,
		PaceBps: t.pathPace, RTT: t.baseRTT,
		ClockSteps: t.c.ClockSteps, Grain: float64(t.c.Grain) / 1e9, Coarse: t.coarse(), InBatches: t.c.InBatches,
	}
	switch t.vantage {
	case AtSender:
		f.Place = trust.AtSender
	case AtReceiver:
		f.Place = trust.AtReceiver
	}
	if f.PaceBps == 0 && f.Place != trust.AtSender { // a merged segment arrived at that rate or faster
		f.PaceBps = t.capacity
	}
	if t.c.SACKPossible() {
		f.CutOptions = t.c.CutOptions
	}
	if o := d.Oversized; o != nil {
		f.MergedCount = o.Count
		f.MergedBytes = o.Bytes
	}
	return trust.Of(&f)
}
