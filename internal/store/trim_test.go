package store

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// TestWhatGoesLeavesItsDays: ages and bytes take runs away, and the days' figures stay what
// they were, however often and in whatever pieces that happens.
func TestWhatGoesLeavesItsDays(t *testing.T) { both(t, testWhatGoesLeavesItsDays) }

func testWhatGoesLeavesItsDays(t *testing.T, at func() *Store) {
	s := at()
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
		if s.usedBytes == nil {
			return 0
		}
		tx, err := s.db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		n, err := s.usedBytes(t.Context(), tx)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	size, smallest := used(), int64(200<<10)
	for _, keep := range []Keep{{Samples: 1e18, Runs: 1e18, Bytes: size / 2}, {Samples: 1e18, Runs: 1e18, Bytes: smallest},
		{Samples: 1e18, Runs: 1e18, Results: 80, Bytes: smallest},
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
	if err := s.Trim(t.Context(), now, Keep{Bytes: 1, Results: 1, Samples: 1e18, Runs: 1e18}); err != nil {
		t.Fatal(err)
	}
	if left, err := s.List(t.Context(), Filter{}); err != nil || len(left) != 1 {
		t.Errorf("the newest run stays: %d, %v", len(left), err)
	}
}

// TestOlderHistoryKeepsItsRuns opens histories of every older version.
func TestOlderHistoryKeepsItsRuns(t *testing.T) {
	both(t, func(t *testing.T, at func() *Store) {
		s := at()
		if _, err := s.List(t.Context(), Filter{}); err != nil {
			t.Fatal(err)
		}
		doc := measured(t, 1, "b", 5e6)
		if _, err := s.db.Exec("INSERT INTO path(key, far) VALUES('k', 'b')"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.db.Exec("INSERT INTO run VALUES('an-id', 'k', 'measure', 5, $1, $2, $3)", string(record.Manual),
			string(record.Done), pack(doc)); err != nil {
			t.Fatal(err)
		}
		_, latest, err := pending(0)
		if err != nil {
			t.Fatal(err)
		}
		since := [][]string{1: {"DROP TABLE day", "DROP TABLE gone"}, // what came after each version
			2: {"ALTER TABLE direction DROP COLUMN retransmitted_ratio"}}
		for version := latest - 1; version >= 1; version-- {
			for of := version; of < latest; of++ {
				if of >= len(since) {
					t.Fatalf("what did version %d add?", of+1)
				}
				for _, statement := range since[of] {
					if _, err := s.db.Exec(statement); err != nil {
						t.Fatal(err)
					}
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
		}
	})
}

func setVersion(t *testing.T, s *Store, version int) {
	t.Helper()
	statement := "UPDATE fullpipe_version SET version = %d"
	if s.outbox == nil {
		statement = "PRAGMA user_version = %d"
	}
	if _, err := s.db.Exec(fmt.Sprintf(statement, version)); err != nil {
		t.Fatal(err)
	}
}
