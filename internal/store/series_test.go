package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestSeries: pages of paths by their newest result, and a path's runs between two times.
func TestSeries(t *testing.T) { both(t, testSeries) }

func testSeries(t *testing.T, at func() *Store) {
	s := at()
	if all, err := s.Paths(t.Context(), 0, 10); err != nil || len(all) != 0 {
		t.Errorf("of nothing: %+v, %v", all, err)
	}
	const runs = 12
	for i := range runs { // newest result of a before b's, b's before c's
		doc := measured(t, i, []string{"a", "b", "c"}[i%3], float64(1+i)*1e6)
		must.Get(s.Add(t.Context(), doc, nil))(t)
	}
	var fars []string
	for offset := range 4 {
		page := must.Get(s.Paths(t.Context(), offset, 1))(t)
		for _, p := range page {
			fars = append(fars, fmt.Sprintf("%s %d %s", p.Far, p.Runs, p.Newest.Sub(begin)))
		}
	}
	if want := []string{"c 4 11h0m0s", "b 4 10h0m0s", "a 4 9h0m0s"}; !slices.Equal(fars, want) {
		t.Errorf("%v, not %v", fars, want)
	}
	key := record.SeriesID{Far: "b"}.Key() // at 1, 4, 7 and 10 hours
	hour := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Hour) }
	for _, c := range []struct {
		page Page
		want []int
	}{{Page{Limit: 10}, []int{1, 4, 7, 10}}, {Page{Limit: 2}, []int{7, 10}},
		{Page{Since: hour(4), Limit: 10}, []int{4, 7, 10}},
		{Page{Before: hour(7), Limit: 10}, []int{1, 4}}, {Page{Since: hour(4), Before: hour(7), Limit: 10}, []int{4}},
		{Page{Since: hour(11), Limit: 10}, nil}, {Page{Limit: 0}, nil}} {
		all := must.Get(s.Of(t.Context(), key, c.page))(t)
		var got []int
		for _, r := range all {
			got = append(got, int(r.StartedAt.Sub(begin)/time.Hour))
			if n := got[len(got)-1]; r.PathKey != key || r.Far != "b" || len(r.Directions) != 1 ||
				*r.Directions[0].GoodputBps != float64(1+n)*1e6 || r.Directions[0].Limiter != "bottleneck" {
				t.Errorf("%+v", r)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, not %v", c.page, got, c.want)
		}
	}
	if p, err := s.Path(t.Context(), key); err != nil || p.Runs != 4 || p.Newest != hour(10) || p.Far != "b" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := s.Path(t.Context(), "nobody"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if all, err := s.Of(t.Context(), "nobody", Page{Limit: 5}); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	last, err := s.List(t.Context(), Filter{Limit: 1})
	if err != nil || len(last) != 1 {
		t.Fatal(last, err)
	}
	for _, c := range []struct{ name, value string }{{"by", "me"}, {"site", ""}} {
		must.Do(t, s.Label(t.Context(), last[0].ID, c.name, c.value))
	}
	doc, err := s.Document(t.Context(), last[0].ID)
	if err != nil || !maps.Equal(doc.Head().Labels, map[string]string{"by": "me"}) {
		t.Errorf("%+v, %v", doc, err)
	}
	// A path without runs is not on any page, but keeps its daily figures.
	if err := s.Trim(t.Context(), hour(runs), Keep{Samples: 1e18, Runs: 1e18, Results: 1, Bytes: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Paths(t.Context(), 0, 10); err != nil || len(all) != 1 || all[0].Far != "c" {
		t.Errorf("after all but one are gone: %+v, %v", all, err)
	}
}

func TestTuneDecision(t *testing.T) { both(t, testTuneDecision) }

// testTuneDecision checks that lists have a tune's decision, and the baseline's goodput where its gain is only likely.
func testTuneDecision(t *testing.T, at func() *Store) {
	s := at()
	key := record.SeriesID{Far: "far"}.Key()
	for i, strength := range []search.Strength{search.Shown, search.Likely} {
		started := begin.Add(time.Duration(i) * time.Hour)
		doc, err := record.Encode(&record.Tune{Header: record.Header{Schema: "fullpipe/tune/v1", Version: "test",
			StartedAt: started, Envelope: &record.Envelope{ID: record.NewID(started, [10]byte{byte(i)}), PathKey: key,
				Origin: record.Manual, Outcome: record.Done}}, Peer: "far",
			Directions: []record.TuneDirection{{Direction: "up", Verdict: search.Change,
				Decision: &record.TuneDecision{Strength: strength, ProbabilityRatio: 0.97, Tried: []string{"bbr"}},
				Before:   record.TuneMeasured{MedianBps: 5e6}, After: &record.TuneMeasured{MedianBps: 9e6}}}})
		if err != nil {
			t.Fatal(err)
		}
		must.Get(s.Add(t.Context(), doc, nil))(t)
	}
	listed, err := s.List(t.Context(), Filter{})
	if err != nil || len(listed) != 2 {
		t.Fatalf("%+v, %v", listed, err)
	}
	slices.Reverse(listed) // the oldest first
	series, err := s.Of(t.Context(), key, Page{Limit: 10})
	if err != nil || len(series) != 2 {
		t.Fatalf("%+v, %v", series, err)
	}
	for _, runs := range [][]Run{listed, series} {
		shown, likely := runs[0].Directions[0], runs[1].Directions[0]
		if shown.Verdict != search.Change || shown.Strength != search.Shown || *shown.GoodputBps != 9e6 {
			t.Errorf("shown: %+v", shown)
		}
		if likely.Verdict != search.Change || likely.Strength != search.Likely || *likely.GoodputBps != 5e6 {
			t.Errorf("likely: %+v", likely)
		}
	}
}

func TestRequestsFigures(t *testing.T) { both(t, testRequestsFigures) }

// testRequestsFigures checks that lists have the rate and the times of a load of requests.
func testRequestsFigures(t *testing.T, at func() *Store) {
	s := at()
	key := record.SeriesID{Far: "far"}.Key()
	doc, err := record.Encode(&record.MeasureRequests{Header: record.Header{Schema: "fullpipe/measure/v1", Version: "test",
		StartedAt: begin, Envelope: &record.Envelope{ID: record.NewID(begin, [10]byte{1}), PathKey: key,
			Origin: record.Manual, Outcome: record.Done}}, Peer: "far", Method: "rr", RequestsPerS: 8123,
		Requests: record.Requests{Turns: &record.Turns{Count: 500, P50S: 1e-4, P99S: new(0.02)}}})
	if err != nil {
		t.Fatal(err)
	}
	must.Get(s.Add(t.Context(), doc, nil))(t)
	listed := must.Get(s.List(t.Context(), Filter{}))(t)
	series := must.Get(s.Of(t.Context(), key, Page{Limit: 10}))(t)
	for _, runs := range [][]Run{listed, series} {
		if len(runs) != 1 || len(runs[0].Directions) != 1 {
			t.Fatalf("%+v", runs)
		}
		f := runs[0].Directions[0]
		if *f.RequestsPerS != 8123 || *f.P50S != 1e-4 || *f.P99S != 0.02 || f.GoodputBps != nil {
			t.Errorf("%+v", f)
		}
	}
}
