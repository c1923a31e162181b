package main

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/recheck/runner"
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

// TestRecheck_ChargesOfKilledTests: the charge that a killed process left behind counts until the test's run is known,
// on its day, with the bytes that the test moved.
func TestRecheck_ChargesOfKilledTests(t *testing.T) {
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	expected := recheck.Cost{Bytes: 1000, Time: time.Second}
	for name, c := range map[string]struct {
		at      time.Duration
		moved   int64
		known   bool
		settled bool
		want    recheck.Cost
	}{
		"at once":           {at: time.Hour, want: expected},
		"moved less":        {at: time.Hour, moved: 999, want: expected},
		"moved more":        {at: time.Hour, moved: 5000, want: recheck.Cost{Bytes: 5000, Time: time.Second}},
		"kept, not settled": {at: time.Hour, moved: 5000, known: true},
		"kept":              {at: time.Hour, settled: true},
		"of the day before": {at: -time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			k := &rechecker{dir: t.TempDir(), accounts: map[string]account{}}
			o := runner.Order{At: begin.Add(c.at), Cost: expected}
			id := record.NewID(o.At, [10]byte{1})
			charged, err := k.charge(o, id)
			if err != nil {
				t.Fatal(err)
			}
			charged.moved(c.moved)
			if c.known {
				k.accounts[id] = account{at: o.At}
			}
			if c.settled {
				charged.settle()
			}
			for range 2 {
				if cost := k.charged(begin); cost != c.want {
					t.Errorf("%+v is charged, want %+v", cost, c.want)
				}
			}
		})
	}
}
