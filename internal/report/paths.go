package report

import (
	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Standings compares each result of a path's runs, the oldest first, with those before it, direction by direction. It
// returns the given number of newest results of each direction. Retests and failed runs do not count for the usual
// level.
func Standings(runs []record.HistoryRun, newest int) []record.KeptDirection {
	out := []record.KeptDirection{}
	before := map[string][]float64{}
	at := map[string]int{}
	for i := range runs {
		r := &runs[i]
		if len(r.Directions) == 0 { // it failed, whichever direction it meant
			for j := range out {
				out[j].Results = append(out[j].Results, standing(r, &record.Figure{}, nil))
			}
		}
		for j := range r.Directions {
			f := &r.Directions[j]
			if _, known := at[f.Direction]; !known {
				at[f.Direction] = len(out)
				out = append(out, record.KeptDirection{Direction: f.Direction})
			}
			d := &out[at[f.Direction]]
			d.Results = append(d.Results, standing(r, f, before[f.Direction]))
			if counts(r, f) {
				before[f.Direction] = append(before[f.Direction], *f.GoodputBps)
			}
		}
	}
	for i := range out {
		out[i].Results = out[i].Results[max(len(out[i].Results)-newest, 0):]
	}
	return out
}

func counts(r *record.HistoryRun, f *record.Figure) bool {
	return f.GoodputBps != nil && *f.GoodputBps > 0 && r.Outcome == record.Done && r.Origin != record.Retest
}

func standing(r *record.HistoryRun, f *record.Figure, before []float64) record.KeptPoint {
	p := record.KeptPoint{ID: r.ID, StartedAt: r.StartedAt, Outcome: r.Outcome, GoodputBps: f.GoodputBps,
		RTTMinS: f.RTTMinS, Limiter: f.Limiter, RetransmittedRatio: f.RetransmittedRatio,
		Verdict: f.Verdict, Strength: f.Strength, Against: record.TooFew}
	usual, ok := changepoint.PastOf(before)
	if ok {
		p.UsualBps = &usual.Level
	}
	switch {
	case f.GoodputBps == nil || r.Outcome != record.Done:
		p.Against = record.NoFigures
	case ok:
		p.Against = record.StandingOf(*f.GoodputBps, usual)
	}
	return p
}
