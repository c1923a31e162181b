package report

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Standings compares each result of a path's runs, the oldest first, with those before it, direction by direction. It
// returns the given number of newest results of each direction. Retests, failed runs and results after a lasting fall
// do not count for the usual level.
func Standings(runs []record.HistoryRun, newest int) []record.KeptDirection {
	out := []record.KeptDirection{}
	fallen := fallenResults(runs)
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
			if counts(r, f) && !fallen[f] {
				before[f.Direction] = append(before[f.Direction], *f.GoodputBps)
			}
		}
	}
	for i := range out {
		out[i].Results = out[i].Results[max(len(out[i].Results)-newest, 0):]
	}
	return out
}

// isAccepted reports whether somebody accepted a result's limiter and rate.
func isAccepted(r *record.HistoryRun) bool { return r.Labels[record.AcceptedLabel] != "" }

// fallenResults returns the results of a path's runs that are no past: those on a level that has fallen and not
// returned. Of a fall that was accepted they are those before it.
func fallenResults(runs []record.HistoryRun) map[*record.Figure]bool {
	of := map[string][]*record.Figure{}
	values := map[string][]float64{}
	accepted := map[string]int{} // the number of results up to the newest accepted one
	for i := range runs {
		for j := range runs[i].Directions {
			f := &runs[i].Directions[j]
			if !counts(&runs[i], f) {
				continue
			}
			of[f.Direction] = append(of[f.Direction], f)
			values[f.Direction] = append(values[f.Direction], *f.GoodputBps)
			if isAccepted(&runs[i]) {
				accepted[f.Direction] = len(values[f.Direction])
			}
		}
	}
	all := map[*record.Figure]bool{}
	for direction, series := range values {
		fallen := changepoint.Fallen(series)
		since := accepted[direction]
		for since > 0 && fallen[since-1] {
			since--
		}
		if since < accepted[direction] {
			fallen = append(slices.Repeat([]bool{true}, since), changepoint.Fallen(series[since:])...)
		}
		for i, is := range fallen {
			all[of[direction][i]] = is
		}
	}
	return all
}

func counts(r *record.HistoryRun, f *record.Figure) bool {
	return f.GoodputBps != nil && *f.GoodputBps > 0 && r.Outcome == record.Done && r.Origin != record.Retest
}

func standing(r *record.HistoryRun, f *record.Figure, before []float64) record.KeptPoint {
	p := record.KeptPoint{ID: r.ID, StartedAt: r.StartedAt, Outcome: r.Outcome, GoodputBps: f.GoodputBps,
		RTTMinS: f.RTTMinS, Limiter: f.Limiter, RetransmittedRatio: f.RetransmittedRatio,
		Verdict: f.Verdict, Strength: f.Strength, Against: record.TooFew, Accepted: isAccepted(r)}
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
