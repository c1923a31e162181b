package main

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// TestRecheck_ImportedResultsHaveNoSay: results with this host's own identifier and series, as an export shows both,
// that were imported lead to no event, no test and no cost.
func TestRecheck_ImportedResultsHaveNoSay(t *testing.T) {
	const far, hostID = "far.example.net", "0123456789abcdef0123456789abcdef"
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	result := func(n int, bps float64) []byte {
		t.Helper()
		at, took, bytes := begin.Add(time.Duration(n)*6*time.Hour), 1.0, int64(1e6)
		d := record.Direction{Direction: "up", GoodputBps: &bps, Bytes: &bytes, Streams: []record.Stream{}}
		d.Limiter = "bottleneck"
		doc := &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1", Version: "test", StartedAt: at,
			Envelope: &record.Envelope{ID: record.NewID(at, [10]byte{byte(n)}), HostID: hostID, Origin: record.Scheduled,
				Outcome: record.Done, PathKey: record.Path{Far: far}.Key(), TookS: &took}},
			Peer: far, Directions: []record.Direction{d}}
		encoded, err := record.Encode(doc)
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	for name, c := range map[string]struct {
		halved func(s *store.Store, doc []byte) error // how the results of half the level come
		wants  bool
		tests  int64
	}{
		"measured here": {func(s *store.Store, doc []byte) error { return s.Keep(t.Context(), doc, nil) }, true, 17},
		"imported": {func(s *store.Store, doc []byte) error { _, err := s.Add(t.Context(), doc, nil); return err },
			false, 16},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv(store.Variable, dir)
			t.Setenv(store.URLVariable, "")
			t.Setenv(configVariable, "")
			s, err := store.Open(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for n := range 16 {
				if err := s.Keep(t.Context(), result(n, 100e6+float64(n%3)*1e6), nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.halved(s, result(16, 10e6)); err != nil {
				t.Fatal(err)
			}
			cmd := newRecheck()
			cmd.SetContext(t.Context())
			k := &rechecker{cmd: cmd, dir: dir, hostID: hostID, accounts: map[string]account{},
				fars: map[string]*recheckFar{far: {address: far, series: record.Path{Far: far}.Key()}}}
			past, err := k.load(t.Context(), far)
			if err != nil {
				t.Fatal(err)
			}
			if _, directions := past.Path.Wants(); (len(directions) > 0) != c.wants {
				t.Errorf("tests of %q are wanted", directions)
			}
			cost, err := k.spent(t.Context(), begin)
			want := recheck.Cost{Bytes: c.tests * 1e6, Time: time.Duration(c.tests) * time.Second}
			if err != nil || cost != want {
				t.Errorf("%+v was spent, want %+v: %v", cost, want, err)
			}
		})
	}
}
