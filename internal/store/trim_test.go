package store

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// TestWhatGoesLeavesItsDays: ages and bytes take runs away, and the days' figures stay what
// they were, however often and in whatever pieces that happens.
func TestWhatGoesLeavesItsDays(t *testing.T) {
	s := open(t, t.TempDir())
	noise := make([]byte, 40<<10)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte('a' + rng.IntN(26))
	}
	const runs = 96
	for i := range runs {
		samples := append(append([]byte(`{"x":"`), noise...), `"}`...)
		if _, err := s.Add(t.Context(), measured(t, i, "b", float64(1+i%7)*1e6), samples); err != nil {
			t.Fatal(err)
		}
	}
	before, err := s.Days(t.Context(), Filter{})
	if err != nil || len(before) != 5 {
		t.Fatalf("%d days, %v", len(before), err)
	}
	now := begin.Add(runs * time.Hour)
	used := func() int64 {
		tx, err := s.db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		n, err := usedBytes(t.Context(), tx)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	size, smallest := used(), int64(200<<10)
	for _, keep := range []Keep{{Samples: 1e18, Runs: 1e18, Bytes: size / 2}, {Samples: 1e18, Runs: 1e18, Bytes: smallest},
		{Samples: 24 * time.Hour, Runs: 36*time.Hour + time.Minute, Bytes: smallest}} {
		if err := s.Trim(t.Context(), now, keep); err != nil {
			t.Fatal(err)
		}
		if n := used(); n > keep.Bytes {
			t.Errorf("%d bytes of %d", n, keep.Bytes)
		}
		after, err := s.Days(t.Context(), Filter{})
		if err != nil || len(after) != len(before) {
			t.Fatalf("%d days of %d, %v", len(after), len(before), err)
		}
		for i, d := range after {
			b := before[i]
			if d.N != b.N || math.Abs(d.MeanBps/b.MeanBps-1) > 1e-9 || d.LeastBps != b.LeastBps || d.MostBps != b.MostBps ||
				d.Limiters["bottleneck"] != b.N {
				t.Errorf("a day is %+v and was %+v", d, b)
			}
		}
	}
	left, err := s.List(t.Context(), Filter{})
	if err != nil || len(left) == 0 || len(left) > 36+witnesses || left[0].Started != begin.Add((runs-1)*time.Hour) {
		t.Errorf("%d runs are left, %v", len(left), err)
	}
	if _, err := s.Add(t.Context(), measured(t, 0, "b", 1e6), nil); !errors.Is(err, ErrGone) {
		t.Errorf("what is gone comes back, and would count twice: %v", err)
	}
	if err := s.Trim(t.Context(), now, Keep{Bytes: 1, Samples: 1e18, Runs: 1e18}); err != nil {
		t.Fatal(err)
	}
	if left, err := s.List(t.Context(), Filter{}); err != nil || len(left) != 1 {
		t.Errorf("the newest run stays: %d, %v", len(left), err)
	}
}

// TestOlderHistoryKeepsItsRuns opens a history of the first version.
func TestOlderHistoryKeepsItsRuns(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, statement := range []string{"DROP TABLE day", "DROP TABLE gone", "PRAGMA user_version = 1",
		"INSERT INTO path(key, far) VALUES('k', 'b')"} {
		if _, err := s.db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	doc := measured(t, 1, "b", 5e6)
	if _, err := s.db.Exec("INSERT INTO run VALUES('an-id', 'k', 'measure', 5, ?, ?, ?)", string(record.Manual),
		string(record.Done), pack(doc)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, filepath.Clean(dir))
	if got, _, err := s.Get(t.Context(), "an-id"); err != nil || !bytes.Equal(got, doc) {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := s.Days(t.Context(), Filter{}); err != nil {
		t.Error(err)
	}
}
