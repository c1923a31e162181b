package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// TestStore_WatchRecordGrows: a later state replaces a watch's record, an earlier one never does.
func TestStore_WatchRecordGrows(t *testing.T) { both(t, testWatchRecordGrows) }

func testWatchRecordGrows(t *testing.T, at func() *Store) {
	s := at()
	state := func(minutes int, outcome record.Outcome) []byte {
		doc := &record.WatchKept{Header: record.Header{Schema: "fullpipe/watch/v1", StartedAt: begin,
			Envelope: &record.Envelope{ID: record.NewID(begin, [10]byte{1}), Origin: record.Manual, Outcome: outcome,
				PathKey: record.SeriesID{Far: "here"}.Key()}}}
		for range minutes {
			doc.Minutes = append(doc.Minutes, record.WatchMinute{Length: units.Duration(time.Minute),
				Groups: []record.WatchGroup{
					{Network: "192.0.2.0/24", Directions: []record.WatchGroupDirection{{Direction: transfer.Up, Bytes: 1000,
						Shares: map[string]float64{fmt.Sprintf("limiter %d", minutes): 1}}}}}})
		}
		encoded := must.Get(record.Encode(doc))(t)
		return encoded
	}
	for _, c := range []struct {
		minutes int
		outcome record.Outcome
		grows   bool
		is      int
	}{{1, record.Interrupted, true, 1}, {1, record.Interrupted, false, 1}, {3, record.Interrupted, true, 3},
		{2, record.Done, false, 3}, {3, record.Done, true, 3}, {3, record.Interrupted, false, 3}} {
		added, err := s.Add(t.Context(), state(c.minutes, c.outcome), nil)
		if err != nil || added != c.grows {
			t.Errorf("%+v: %v, %v", c, added, err)
		}
		runs, err := s.List(t.Context(), Filter{})
		if err != nil || len(runs) != 1 || runs[0].Kind != "watch" || len(runs[0].Directions) != 1 ||
			runs[0].Directions[0].Limiter != fmt.Sprintf("limiter %d", c.is) {
			t.Fatalf("%+v: %+v, %v", c, runs, err)
		}
	}
	runs, _ := s.List(t.Context(), Filter{})
	if runs[0].Outcome != record.Done {
		t.Errorf("%+v", runs[0])
	}
	// An imported result was not measured here.
	must.Do(t, s.Forget(t.Context(), runs[0].ID))
	for i, keep := range []func() error{
		func() error { return s.Keep(t.Context(), state(1, record.Interrupted), nil) },
		func() error { return s.Keep(t.Context(), state(2, record.Interrupted), nil) },
		func() error { _, err := s.Add(t.Context(), state(3, record.Interrupted), nil); return err },
	} {
		must.Do(t, keep())
		if runs, err := s.List(t.Context(), Filter{MeasuredHere: true}); err != nil || (len(runs) == 1) != (i < 2) {
			t.Errorf("state %d: %d results were measured here, %v", i+1, len(runs), err)
		}
	}
}
