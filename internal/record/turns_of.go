package record

import "github.com/fullpipe-net/fullpipe/internal/turns"

// RequestsOf returns the requests of a profile, without the clients of the slowest.
func RequestsOf(p *turns.Profile) (r Requests) {
	r.Turns = &Turns{Count: p.Count, Bulk: p.Bulky, P50S: seconds(p.P50), P90S: secondsOrNil(p.P90),
		P99S: secondsOrNil(p.P99), MaxS: seconds(p.Max), Unanswered: p.Unanswered, Pushes: p.Pushes,
		Overlapping: p.Overlapping, Interleaved: p.Interleaved(), Needless: p.Needless, Slowest: []SlowestTurn{}}
	for _, bin := range p.Distribution {
		r.Turns.Distribution = append(r.Turns.Distribution, TurnsBin{BelowS: seconds(bin.Below), Count: bin.Count})
	}
	if !r.Turns.Interleaved {
		r.Stages = stagesOf(p)
		for i := range p.Longest {
			r.Turns.Slowest = append(r.Turns.Slowest, slowestTurn(&p.Longest[i].Turn))
		}
	}
	for cause := range turns.Causes {
		for i, from := range []string{"server", "client"} {
			if sum := p.Stalled[cause][i]; sum.Count > 0 {
				r.Stalls = append(r.Stalls, Stall{Cause: cause.String(), From: from, Count: sum.Count,
					TimeS: seconds(sum.Time)})
			}
		}
	}
	return r
}

func slowestTurn(t *turns.Turn) SlowestTurn {
	cause, time := t.Time.Worst()
	s := SlowestTurn{StartS: seconds(t.Start), DurationS: seconds(t.Duration), Cause: cause.String(),
		CauseS: seconds(time), LostBeforeTap: t.LostBeforeTheTap}
	for stage := range turns.Stages {
		for cause, d := range t.Time[stage] {
			if d > 0 {
				s.Parts = append(s.Parts, TurnPart{Stage: stage.String(), Cause: turns.Cause(cause).String(),
					TimeS: seconds(d)})
			}
		}
	}
	return s
}

// minStage is the least time of a stage, in nanoseconds: the kernel's round trips are whole microseconds.
const minStage = 1_000

func stagesOf(p *turns.Profile) (all []Stage) {
	for stage := range turns.Stages {
		for cause := range turns.Causes {
			median := p.Median[stage][cause]
			slowest := p.Slowest[stage][cause]
			if max(median, slowest) >= minStage {
				all = append(all, Stage{Stage: stage.String(), Cause: cause.String(), MedianS: seconds(median),
					SlowestS: seconds(slowest)})
			}
		}
	}
	return all
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

func secondsOrNil(ns int64) *float64 {
	if ns <= 0 {
		return nil
	}
	return new(seconds(ns))
}
