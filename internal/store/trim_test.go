package store

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestTrim_LeavesDailyFigures: daily figures stay correct when runs are removed by age and size, in any number of
// steps.
func TestTrim_LeavesDailyFigures(t *testing.T) { both(t, testLeavesDailyFigures) }

func testLeavesDailyFigures(t *testing.T, at func() *Store) {
	s := at()
	const runs = 96
	for i := range runs {
		samples := []byte(`{"x":"` + noise(40<<10, 1) + `"}`)
		must.Get(s.Add(t.Context(), measured(t, i, "b", float64(1+i%7)*1e6), samples))(t)
	}
	before, err := s.Days(t.Context(), Filter{})
	if err != nil || len(before) != 5 {
		t.Fatalf("%d days, %v", len(before), err)
	}
	now := begin.Add(runs * time.Hour)
	size, smallest := used(t, s), int64(200<<10)
	for _, keep := range []Keep{{Samples: 1e18, Runs: 1e18, Bytes: size / 2}, {Samples: 1e18, Runs: 1e18, Bytes: smallest},
		{Samples: 1e18, Runs: 1e18, Results: 80, Bytes: smallest},
		{Samples: 24 * time.Hour, Runs: 36*time.Hour + time.Minute, Bytes: smallest}} {
		must.Do(t, s.Trim(t.Context(), now, keep))
		if n := used(t, s); n > keep.Bytes {
			t.Errorf("%d bytes of %d", n, keep.Bytes)
		}
		after, err := s.Days(t.Context(), Filter{})
		if err != nil || len(after) != len(before) {
			t.Fatalf("%d days of %d, %v", len(after), len(before), err)
		}
		for i, d := range after {
			b := before[i]
			if d.Runs != b.Runs || math.Abs(d.MeanBps/b.MeanBps-1) > 1e-9 || d.LeastBps != b.LeastBps ||
				d.MostBps != b.MostBps || d.Limiters["bottleneck"] != b.Runs {
				t.Errorf("a day is %+v and was %+v", d, b)
			}
		}
	}
	left, err := s.List(t.Context(), Filter{})
	if err != nil || len(left) == 0 || len(left) > 36+minNewerRuns || left[0].StartedAt != begin.Add((runs-1)*time.Hour) {
		t.Errorf("%d runs are left, %v", len(left), err)
	}
	if _, err := s.Add(t.Context(), measured(t, 0, "b", 1e6), nil); !errors.Is(err, ErrGone) {
		t.Errorf("a removed run comes back, and would count twice: %v", err)
	}
	must.Do(t, s.Trim(t.Context(), now, Keep{Bytes: 1, Results: 1, Samples: 1e18, Runs: 1e18}))
	if left, err := s.List(t.Context(), Filter{}); err != nil || len(left) != 1 {
		t.Errorf("the newest run stays: %d, %v", len(left), err)
	}
}

// TestMigrate_OlderVersions opens histories of every older version.
func TestMigrate_OlderVersions(t *testing.T) {
	both(t, func(t *testing.T, at func() *Store) {
		s := at()
		must.Get(s.List(t.Context(), Filter{}))(t)
		doc := measured(t, 1, "b", 5e6)
		if _, err := s.db.Exec("INSERT INTO path(key, far) VALUES('k', 'b'), ('c', 'browser://192.0.2.7')"); err != nil {
			t.Fatal(err)
		}
		for _, run := range []struct{ id, path, client string }{{"an-id", "k", ""}, {"of-a-client", "c", "192.0.2.7"}} {
			if _, err := s.db.Exec("INSERT INTO run(id, path, kind, started_ns, origin, outcome, doc, client, bytes) "+
				"VALUES($1, $2, 'measure', 5, $3, $4, $5, $6, $7)", run.id, run.path, string(record.Manual),
				string(record.Done), pack(doc), run.client, len(pack(doc))); err != nil {
				t.Fatal(err)
			}
		}
		_, latest, err := pending(0)
		if err != nil {
			t.Fatal(err)
		}
		since := [][]string{1: {"DROP TABLE day", "DROP TABLE gone"}, // changes after each version
			2: {"ALTER TABLE direction DROP COLUMN retransmitted_ratio"},
			3: {"DROP INDEX run_of_client", "DROP INDEX run_by_time", "CREATE INDEX run_by_time ON run(started_ns)",
				"ALTER TABLE run DROP COLUMN client", "ALTER TABLE run DROP COLUMN bytes", "ALTER TABLE run DROP COLUMN seal"},
			4: {"ALTER TABLE direction DROP COLUMN verdict", "ALTER TABLE direction DROP COLUMN strength"},
			5: {"ALTER TABLE direction DROP COLUMN requests_per_s", "ALTER TABLE direction DROP COLUMN p50_s",
				"ALTER TABLE direction DROP COLUMN p99_s"},
			6: {"ALTER TABLE direction DROP COLUMN lost_at"}}
		for version := latest - 1; version >= 1; version-- {
			for of := version; of < latest; of++ {
				if of >= len(since) {
					t.Fatalf("what did version %d add?", of+1)
				}
				for _, statement := range since[of] {
					must.Get(s.db.Exec(statement))(t)
				}
			}
			setVersion(t, s, version)
			s.Close()
			s = at()
			if got, _, err := s.Get(t.Context(), "an-id"); err != nil || !bytes.Equal(got, doc) {
				t.Errorf("%s, %v", got, err)
			}
			if _, err := s.Days(t.Context(), Filter{}); err != nil {
				t.Error(err)
			}
			var client string
			var bytes int
			err := s.db.QueryRow("SELECT client, bytes FROM run WHERE id = 'of-a-client'").Scan(&client, &bytes)
			if err != nil || client != "192.0.2.7" || bytes != len(pack(doc)) {
				t.Errorf("the result of a client is of %q and %d bytes, %v", client, bytes, err)
			}
			if owner, _, clients := counts(t, s); owner != 1 || clients != 1 {
				t.Errorf("%d results of the owner and %d of clients", owner, clients)
			}
		}
	})
}

func setVersion(t *testing.T, s *Store, version int) {
	t.Helper()
	statement := "UPDATE fullpipe_version SET version = %d"
	if s.outbox == nil {
		statement = "PRAGMA user_version = %d"
	}
	must.Get(s.db.Exec(fmt.Sprintf(statement, version)))(t)
}
