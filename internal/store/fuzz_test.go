package store

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// FuzzRows: arbitrary values in the rows of a shared history still give printable results.
func FuzzRows(f *testing.F) {
	f.Add("a.example", "up", "bottleneck", "done", int64(1_790_000_000_000_000_000), 1e8, 0.02, 1, 18.4)
	f.Add("", "\x1b[2J", "\xff", "", int64(-1), -1e308, 1e308, -5, 1e308)
	s := open(f, f.TempDir())
	for _, off := range []string{"PRAGMA synchronous = OFF", "PRAGMA foreign_keys = OFF"} {
		must.Get(s.db.Exec(off))(f)
	}
	f.Fuzz(func(t *testing.T, far, direction, limiter, outcome string, started int64, bps, rtt float64, n int,
		log float64) {
		const key, id = "0123456789abcdef", "00000000-0000-7000-8000-000000000001"
		for _, row := range []struct {
			sql  string
			args []any
		}{
			{"DELETE FROM day", nil}, {"DELETE FROM label", nil}, {"DELETE FROM direction", nil},
			{"DELETE FROM run", nil}, {"DELETE FROM path", nil},
			{"INSERT INTO path VALUES($1,$2,$2)", []any{key, far}},
			{"INSERT INTO run(id, path, kind, started_ns, origin, outcome, doc) VALUES($1,$2,$3,$4,'manual',$5,$6)",
				[]any{id, key, limiter, started, outcome, []byte(far)}},
			{"INSERT INTO direction VALUES($1,$2,$3,$4,$5,$3)", []any{id, direction, bps, rtt, limiter}},
			{"INSERT INTO label VALUES($1,$2,$2)", []any{id, far}},
			{"INSERT INTO day VALUES($1,$2,$3,$4,$5,$6,$7,$7,$8)",
				[]any{key, direction, started / 1e9, limiter, n, log, bps, rtt}},
		} {
			if _, err := s.db.Exec(row.sql, row.args...); err != nil {
				return // the database refuses the value
			}
		}
		ctx := t.Context()
		for what, ask := range map[string]func() (any, error){
			"list":   func() (any, error) { return s.List(ctx, Filter{}) },
			"of":     func() (any, error) { return s.Of(ctx, key, Page{}) },
			"paths":  func() (any, error) { return s.Paths(ctx, 0, 10) },
			"path":   func() (any, error) { return s.Path(ctx, key) },
			"labels": func() (any, error) { return s.Labels(ctx, id) },
			"days":   func() (any, error) { return s.Days(ctx, Filter{}) },
			"past":   func() (any, error) { return s.Past(ctx, key, direction, time.Unix(0, 0), time.Unix(4e9, 0)) },
		} {
			answer, err := ask()
			if err != nil {
				continue
			}
			if _, err := json.Marshal(answer); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, _ = s.Document(ctx, id)
		if err := s.Trim(ctx, time.Now(), Keep{}); err != nil {
			t.Error(err)
		}
	})
}

// TestStore_ImpossibleRowsLeftOut: impossible figures in a shared history are left out, the rest is returned.
func TestStore_ImpossibleRowsLeftOut(t *testing.T) { both(t, testImpossibleRowsLeftOut) }

func testImpossibleRowsLeftOut(t *testing.T, at func() *Store) {
	s := at()
	for i := range 2 {
		must.Get(s.Add(t.Context(), measured(t, i, "b", 1e6), nil))(t)
	}
	runs, err := s.List(t.Context(), Filter{})
	if err != nil || len(runs) != 2 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	key := runs[0].PathKey
	for _, sql := range []string{
		"UPDATE direction SET goodput_bps = 9e999, rtt_min_s = -9e999 WHERE run = '" + runs[0].ID + "'",
		"INSERT INTO day VALUES('" + key + "', 'up', 5, 'bottleneck', 1, 9e999, 1, 9e999, 9e999)",
		"INSERT INTO day VALUES('" + key + "', 'up', 6, 'bottleneck', 0, 1, 1, 1, 1)"} {
		if s.toChange != "" { // PostgreSQL refuses numbers out of range
			sql = strings.ReplaceAll(strings.ReplaceAll(sql, "-9e999", "'-Infinity'"), "9e999", "'NaN'")
		}
		must.Get(s.db.ExecContext(t.Context(), sql))(t)
	}
	days, err := s.Days(t.Context(), Filter{})
	if err != nil || len(days) != 1 || days[0].Runs != 1 || math.Abs(days[0].MeanBps-1e6) > 1 {
		t.Errorf("%+v, %v", days, err)
	}
	past, err := s.Past(t.Context(), key, "up", begin, begin.Add(24*time.Hour))
	if err != nil || len(past) != 1 {
		t.Errorf("%d figures of the past, %v", len(past), err)
	}
	runs, err = s.List(t.Context(), Filter{})
	if err != nil || len(runs) != 2 || runs[0].Directions[0].GoodputBps != nil || runs[0].Directions[0].RTTMinS != nil {
		t.Errorf("%+v, %v", runs, err)
	}
}
