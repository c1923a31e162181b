package diagnose

import (
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/turns"
)

// addTurns adds the requests of a connection to its record; numbered: the capture is one file.
func addTurns(r *record.CapturedConnection, c *flow.Connection, numbered bool) {
	t := c.Turns()
	if t.Count == t.Bulky {
		return
	}
	p := turns.ProfileOf(&t.Summary)
	r.Turns = &record.Turns{Count: t.Count, Bulk: t.Bulky, P50S: seconds(p.P50), P90S: secondsOrNil(p.P90),
		P99S: secondsOrNil(p.P99), MaxS: seconds(p.Max), Unanswered: t.Unanswered, Pushes: t.Pushes,
		Overlapping: t.Overlapping, Interleaved: t.Interleaved(), ClientAssumed: c.ClientAssumed(), Needless: t.Needless}
	for i := range p.Longest {
		r.Turns.Slowest = append(r.Turns.Slowest, slowestTurn(&p.Longest[i].Turn, numbered))
	}
	if r.Turns.Interleaved {
		r.Turns.Slowest = []record.SlowestTurn{}
	} else {
		r.Stages = stages(&p)
	}
	for cause := range turns.Causes {
		for i, from := range []string{"server", "client"} {
			if sum := t.Stalled[cause][i]; sum.Count > 0 {
				r.Stalls = append(r.Stalls, record.Stall{Cause: cause.String(), From: from, Count: sum.Count,
					TimeS: seconds(sum.Time)})
			}
		}
	}
	if !r.Turns.Leads() {
		return
	}
	for i := range r.Directions {
		d := &r.Directions[i]
		d.LostS = stalled(r.Stalls, d.From == r.Client)
	}
}

// stalled returns the time of the stalls in which one end owed the next packet.
func stalled(all []record.Stall, client bool) (sum float64) {
	for _, s := range all {
		if (s.From == "client") == client {
			sum += s.TimeS
		}
	}
	return sum
}

func slowestTurn(t *turns.Turn, numbered bool) record.SlowestTurn {
	cause, time := t.Time.Worst()
	s := record.SlowestTurn{StartS: seconds(t.Start), DurationS: seconds(t.Duration), Cause: cause.String(),
		CauseS: seconds(time), LostBeforeTap: t.LostBeforeTheTap}
	if numbered {
		s.FirstPacket = t.First
		s.LastPacket = t.Last
	}
	return s
}

func stages(p *turns.Profile) (all []record.Stage) {
	for stage := range turns.Stages {
		for cause := range turns.Causes {
			median := p.Median[stage][cause]
			slowest := p.Slowest[stage][cause]
			if median > 0 || slowest > 0 {
				all = append(all, record.Stage{Stage: stage.String(), Cause: cause.String(), MedianS: seconds(median),
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
