package report

import (
	"github.com/fullpipe-net/fullpipe/internal/change"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// RecheckTest says what came of a visit; failure is its error as users read it, or nil.
func RecheckTest(v *recheck.Visit, failure *record.Failure) record.RecheckTest {
	t := record.RecheckTest{Far: v.Peer, At: v.At, Origin: record.Scheduled, Directions: []record.RecheckDirection{},
		Skipped: string(v.Skip), Error: failure}
	if v.Retest {
		t.Origin = record.Retest
	}
	if !v.Next.IsZero() {
		t.NextAt = &v.Next
	}
	if v.Result == nil {
		return t
	}
	t.TookS = seconds(v.Result.Cost.Time)
	t.RunID = v.Result.RunID
	t.Bytes = &v.Result.Cost.Bytes
	for _, s := range v.Path.Standings() {
		for _, d := range v.Result.Directions {
			if d.Name == s.Name {
				t.Directions = append(t.Directions, recheckDirection(&s))
			}
		}
	}
	return t
}

func recheckDirection(s *recheck.Standing) record.RecheckDirection {
	d := record.RecheckDirection{Figure: record.Figure{Direction: s.Name, Limiter: s.Limiter,
		RTTMinS: told(s.RTTMin)}, Results: s.Results, State: string(s.State)}
	if s.GoodputBps > 0 {
		d.GoodputBps = &s.GoodputBps
	}
	if s.UsualBps > 0 {
		d.UsualBps = &s.UsualBps
	}
	return d
}

// RecheckEvent describes an event of a visit. planFor returns whether the settings that were applied still suffice.
func RecheckEvent(peer string, e *recheck.Event,
	planFor func(*record.RecheckEvent) *record.RecheckPlan) record.RecheckEvent {
	out := recheckEvent(peer, e)
	out.Plan = planFor(&out)
	out.Text = text.RecheckSentence(&out)
	return out
}

func recheckEvent(peer string, e *recheck.Event) record.RecheckEvent {
	out := record.RecheckEvent{Event: string(e.What), Far: peer, Direction: e.Direction, Metric: string(e.Metric),
		At: e.At, Since: e.Since, RunID: e.RunID, Before: e.Before, After: e.After, Confidence: "high"}
	if e.Shift.LowConfidence {
		out.Confidence = "low"
	}
	before := &e.Shift.Before
	after := &e.Shift.After
	switch e.Metric {
	case recheck.Goodput:
		out.BeforeBps = before
		out.AfterBps = after
	case recheck.RTT:
		out.BeforeRTTMinS = before
		out.AfterRTTMinS = after
	default:
		return out
	}
	switch {
	case e.What == change.Dipped && *after > *before:
		out.Event = "rise"
	case e.What == change.Back:
		return out
	}
	out.P = &e.Shift.P
	return out
}
