package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
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
		if _, err := s.Add(t.Context(), doc, nil); err != nil {
			t.Fatal(err)
		}
	}
	var fars []string
	for offset := range 4 {
		page, err := s.Paths(t.Context(), offset, 1)
		if err != nil {
			t.Fatal(err)
		}
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
		all, err := s.Of(t.Context(), key, c.page)
		if err != nil {
			t.Fatal(err)
		}
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
		if err := s.Label(t.Context(), last[0].ID, c.name, c.value); err != nil {
			t.Fatal(err)
		}
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
