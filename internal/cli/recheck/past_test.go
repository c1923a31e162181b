package recheck

import (
	"errors"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/settings"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/recheck/runner"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/secret"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
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
				Outcome: record.Done, PathKey: record.SeriesID{Far: far}.Key(), TookS: &took}},
			Peer: far, Directions: []record.Direction{d}}
		encoded := must.Get(record.Encode(doc))(t)
		return encoded
	}
	for name, c := range map[string]struct {
		halved func(s *store.Store, doc []byte) error // how the results of half the level come
		wants  bool
		tests  int64
	}{
		"measured here": {func(s *store.Store, doc []byte) error { return s.Keep(t.Context(), doc, nil) }, true, 4},
		"imported": {func(s *store.Store, doc []byte) error { _, err := s.Add(t.Context(), doc, nil); return err },
			false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv(store.Variable, dir)
			t.Setenv(secret.Store, "")
			t.Setenv(settings.Variable, "")
			s := must.Get(store.Open(t.Context(), dir))(t)
			defer s.Close()
			for n := range 16 {
				must.Do(t, s.Keep(t.Context(), result(n, 100e6+float64(n%3)*1e6), nil))
			}
			must.Do(t, c.halved(s, result(16, 10e6)))
			cmd := New()
			cmd.SetContext(t.Context())
			k := &rechecker{cmd: cmd, dir: dir, hostID: hostID, accounts: map[string]account{},
				fars: map[string]*recheckFar{far: {address: far, series: record.SeriesID{Far: far}.Key()}}}
			past := must.Get(k.load(t.Context(), far))(t)
			if _, directions := past.Path.Wants(); (len(directions) > 0) != c.wants {
				t.Errorf("tests of %q are wanted", directions)
			}
			if err := s.Keep(t.Context(), result(16+4*365, 100e6), nil); err != nil { // by a clock that was ahead
				t.Fatal(err)
			}
			cost, err := k.spent(t.Context(), begin.Add(78*time.Hour))
			want := recheck.Cost{Bytes: c.tests * 1e6, Time: time.Duration(c.tests) * time.Second}
			if err != nil || cost != want {
				t.Errorf("%+v was spent, want %+v: %v", cost, want, err)
			}
		})
	}
}

// TestRecheck_ChargesOfKilledTests: the charge of a killed process counts on its day, with the bytes that the
// test transferred, until the test's result is in the history. A first test has no history: until its first interval
// the charge is the maximum that it may transfer, and its length. Charges of no counted day are removed.
func TestRecheck_ChargesOfKilledTests(t *testing.T) {
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	expected := recheck.Cost{Bytes: 1000, Time: time.Second}
	for name, c := range map[string]struct {
		at      time.Duration
		first   bool
		moved   []int64
		known   bool
		settled bool
		garbage bool
		want    recheck.Cost
		stays   bool // the file
	}{
		"at once":    {at: time.Hour, want: expected, stays: true},
		"moved less": {at: time.Hour, moved: []int64{499}, want: expected, stays: true},
		"moved more": {at: time.Hour, moved: []int64{100, 2450}, want: recheck.Cost{Bytes: 5000, Time: time.Second},
			stays: true},
		"first": {at: time.Hour, first: true, want: recheck.Cost{Bytes: 1e6, Time: 3 * time.Second}, stays: true},
		"first, moved": {at: time.Hour, first: true, moved: []int64{100}, want: recheck.Cost{Bytes: 200,
			Time: 3 * time.Second}, stays: true},
		"kept, not settled": {at: time.Hour, moved: []int64{5000}, known: true},
		"kept":              {at: time.Hour, settled: true},
		"of the day before": {at: -time.Hour, stays: true},
		"of a week before":  {at: -7 * 24 * time.Hour},
		"of the next year":  {at: 365 * 24 * time.Hour, stays: true},
		"garbage":           {garbage: true},
	} {
		t.Run(name, func(t *testing.T) {
			k := &rechecker{dir: t.TempDir(), accounts: map[string]account{}}
			o := runner.Order{At: begin.Add(c.at), Cost: expected, MaxBytes: 1e6}
			if c.first {
				o.Cost = recheck.Cost{}
			}
			id := record.NewID(o.At, [10]byte{1})
			charged := must.Get(k.charge(o, id, 3*time.Second))(t)
			var moved int64
			for _, bytes := range c.moved {
				moved += bytes
				charged.moved(moved, bytes)
			}
			name := charged.file.File().Name()
			if c.garbage {
				week := begin.AddDate(0, 0, -7)
				must.Do(t, errors.Join(os.Truncate(name, 9), os.Chtimes(name, week, week)))
			}
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
			if _, err := os.Lstat(name); (err == nil) != c.stays {
				t.Errorf("the charge stays: %v, want %v", err == nil, c.stays)
			}
		})
	}
}

// FuzzParseCharge checks that no file lowers what a day's tests cost.
func FuzzParseCharge(f *testing.F) {
	for _, bytes := range []int64{1 << 20, -1, math.MaxInt64} {
		f.Add(fmt.Appendf(nil, chargeForm, 1, "id", bytes, 1))
	}
	f.Add(fmt.Appendf(nil, chargeForm, -1, "", 1, math.MinInt64))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, ok := parseCharge(text)
		sum := c.cost.Plus(c.cost)
		if ok && (sum.Bytes < c.cost.Bytes || sum.Time < c.cost.Time || c.cost.Bytes < 0 || c.cost.Time < 0) {
			t.Errorf("%q: %+v", text, c)
		}
	})
}
