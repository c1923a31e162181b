package report

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// RecheckTest describes a visit; failure is its error as users read it, or nil.
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
		if slices.ContainsFunc(v.Result.Directions, func(d recheck.Direction) bool { return d.Name == s.Direction }) {
			t.Directions = append(t.Directions, s)
		}
	}
	return t
}

// RecheckEvent completes an event with its far end, whether the applied settings still suffice, and its sentence.
func RecheckEvent(e record.RecheckEvent, peer string, fits *record.RecheckPlan) record.RecheckEvent {
	e.Far = peer
	e.Plan = fits
	e.Text = text.RecheckSentence(&e)
	return e
}
