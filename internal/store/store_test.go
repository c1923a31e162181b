package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store/pgtest"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func TestMain(m *testing.M) {
	if os.Getenv(writerVariable) != "" {
		writeOn()
	}
	pgtest.Main(m)
}

var begin = time.Date(2026, 3, 1, 2, 30, 0, 123456789, time.UTC)

// measured returns a record of a path at hour n.
func measured(t testing.TB, n int, far string, bps float64) []byte {
	t.Helper()
	encoded := must.Get(document(n, far, bps))(t)
	return encoded
}

func document(n int, far string, bps float64) ([]byte, error) {
	at := begin.Add(time.Duration(n) * time.Hour)
	direction := record.Direction{Direction: "up", GoodputBps: &bps, Streams: []record.Stream{}}
	direction.Limiter = "bottleneck"
	doc := &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1", Version: "test", StartedAt: at,
		Envelope: &record.Envelope{ID: record.NewID(at, [10]byte{byte(n), byte(n >> 8), 9: byte(len(far))}),
			Origin: record.Manual, Outcome: record.Done,
			PathKey: record.SeriesID{Far: far}.Key(), Labels: map[string]string{"site": far}}},
		Peer: far, Directions: []record.Direction{direction}}
	return record.Encode(doc)
}

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s := must.Get(Open(t.Context(), dir))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// both runs a test on a new history in a file and on one in PostgreSQL. at reopens it.
func both(t *testing.T, test func(t *testing.T, at func() *Store)) {
	run := func(name string, url func(*testing.T) string) {
		t.Run(name, func(t *testing.T) {
			dir, url := t.TempDir(), url(t)
			test(t, func() *Store {
				s := must.Get(OpenAt(t.Context(), dir, url))(t)
				t.Cleanup(func() { s.Close() })
				return s
			})
		})
	}
	run("sqlite", func(*testing.T) string { return "" })
	run("postgres", func(t *testing.T) string { return pgtest.Shared(t).URL(t) })
}

func TestAdd_KeepsDocumentUnchanged(t *testing.T) { both(t, testKeepsDocumentUnchanged) }

func testKeepsDocumentUnchanged(t *testing.T, at func() *Store) {
	s := at()
	doc := bytes.Replace(measured(t, 1, "b", 5e6), []byte(`"peer"`), []byte(`"of_a_newer_version": [1,   2], "peer"`), 1)
	if added, err := s.Add(t.Context(), doc, []byte(`{"series":[]}`)); !added || err != nil {
		t.Fatal(added, err)
	}
	if added, err := s.Add(t.Context(), doc, nil); added || err != nil {
		t.Errorf("the second time: %v, %v", added, err)
	}
	runs, err := s.List(t.Context(), Filter{})
	if err != nil || len(runs) != 1 || runs[0].StartedAt != begin.Add(time.Hour) || runs[0].Labels["site"] != "b" ||
		*runs[0].Directions[0].GoodputBps != 5e6 {
		t.Fatalf("%+v, %v", runs, err)
	}
	for _, id := range []string{"last", runs[0].ID, runs[0].ID[24:], strings.ToUpper(runs[0].ID[:13])} {
		got, samples, err := s.Get(t.Context(), id)
		if err != nil || !bytes.Equal(got, doc) || string(samples) != `{"series":[]}` {
			t.Errorf("%s: %v, %s, %s", id, err, got, samples)
		}
	}
	if err := errors.Join(s.Label(t.Context(), "last", "site", "Bern"), s.Label(t.Context(), "last", "by",
		"me")); err != nil {
		t.Fatal(err)
	}
	must.Get(s.Add(t.Context(), measured(t, 2, "c", 5e6), nil))(t)
	if runs, err := s.List(t.Context(), Filter{Limit: 1}); err != nil || len(runs) != 1 || runs[0].Far != "c" ||
		len(runs[0].Directions) != 1 || runs[0].Labels["site"] != "c" {
		t.Errorf("%+v, %v", runs, err)
	}
	if runs, err := s.List(t.Context(), Filter{Path: "b"}); err != nil || len(runs) != 1 ||
		runs[0].Labels["site"] != "Bern" {
		t.Errorf("%+v, %v", runs, err)
	}
	must.Do(t, s.Forget(t.Context(), runs[0].ID))
	must.Do(t, s.Forget(t.Context(), "last"))
	if _, _, err := s.Get(t.Context(), "last"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// TestStore_ConcurrentDuplicates: several users of one new file each add the same results.
func TestStore_ConcurrentDuplicates(t *testing.T) { both(t, testConcurrentDuplicates) }

func testConcurrentDuplicates(t *testing.T, at func() *Store) {
	const users, runs = 6, 30
	var wait sync.WaitGroup
	problems := make(chan error, users*(runs+1))
	docs := make([][]byte, runs)
	for i := range docs {
		docs[i] = measured(t, i, "b", 1e6)
	}
	for u := range users {
		wait.Go(func() {
			s := at()
			for i := range runs {
				if _, err := s.Add(t.Context(), docs[(i+u*5)%runs], nil); err != nil {
					problems <- fmt.Errorf("user %d: %w", u, err)
				}
			}
		})
	}
	wait.Wait()
	close(problems)
	for err := range problems {
		t.Error(err)
	}
	if all, err := at().List(t.Context(), Filter{}); err != nil || len(all) != runs {
		t.Errorf("%d runs of %d, %v", len(all), runs, err)
	}
}

func TestPast(t *testing.T) { both(t, testPast) }

func testPast(t *testing.T, at func() *Store) {
	s := at()
	for i := range 6 {
		must.Get(s.Add(t.Context(), measured(t, i, []string{"b", "c"}[i%2], float64(i)), nil))(t)
	}
	past, err := s.Past(t.Context(), record.SeriesID{Far: "c"}.Key(), "up", begin, begin.Add(5*time.Hour))
	if err != nil || len(past) != 2 || *past[0].GoodputBps != 1 || *past[1].GoodputBps != 3 {
		t.Errorf("%+v, %v", past, err)
	}
}

func TestOpen_RejectsOtherFiles(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if info, err := os.Stat(filepath.Join(dir, "history.db")); err != nil || runtime.GOOS != "windows" &&
		info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := s.Add(t.Context(), []byte(`{"schema":"fullpipe/plan/v1"}`), nil); err == nil {
		t.Error("an unmeasured document is stored")
	}
	_, err := s.Add(t.Context(), measured(t, 1, "b", -5), nil)
	if err == nil || !strings.Contains(err.Error(), "negative goodput") {
		t.Errorf("negative goodput: %v", err)
	}
	must.Get(s.db.Exec("PRAGMA user_version = 99"))(t)
	s.Close()
	if _, err := Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("a newer history: %v", err)
	}
	for name, make := range map[string]func(path string) error{
		"garbage":   func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("no database "), 1000), 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		dir := t.TempDir()
		must.Do(t, make(filepath.Join(dir, "history.db")))
		if _, err := Open(t.Context(), dir); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
}

// TestOpen_DoesNotWaitForWriters: a long write transaction does not block opening and reading.
func TestOpen_DoesNotWaitForWriters(t *testing.T) {
	dir := t.TempDir()
	writer := must.Get(Open(t.Context(), dir))(t)
	defer writer.Close()
	must.Get(writer.Add(t.Context(), measured(t, 1, "b", 1e6), nil))(t)
	tx := must.Get(writer.db.BeginTx(t.Context(), nil))(t)
	defer tx.Rollback()
	reader, err := Open(t.Context(), dir) // fails after wait otherwise
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if runs, err := reader.List(t.Context(), Filter{}); err != nil || len(runs) != 1 {
		t.Errorf("%+v, %v", runs, err)
	}
}

func TestHostID_Persistent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	var wait sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wait.Go(func() { ids[i], _ = HostID(dir) })
	}
	wait.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("%q", ids)
		}
	}
}

// TestTrim_WrongClock: a temporarily wrong clock, here or at an importer's, costs no samples. Its results are
// listed, shown and removed like others.
func TestTrim_WrongClock(t *testing.T) { both(t, testWrongClock) }

func testWrongClock(t *testing.T, at func() *Store) {
	s := at()
	const year = 365 * 24 // hours
	add := func(n int) error {
		_, err := s.Add(t.Context(), measured(t, n, "b", 5e6), []byte(`{"series":[]}`))
		return err
	}
	kept := func() (n int) {
		must.Do(t, s.db.QueryRow("SELECT count(*) FROM samples").Scan(&n))
		return n
	}
	begun := 0
	for n := range minNewerRuns {
		for _, at := range []int{n, 200*year + n, n - 50*year} { // right, ahead, behind
			must.Do(t, add(at))
			begun++
		}
	}
	if err := s.Trim(t.Context(), time.Now(), Keep{Samples: KeepByDefault.Samples, Runs: 200 * year * time.Hour,
		Bytes: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	if n := kept(); n != begun-minNewerRuns { // results of the slow clock are too old by any clock
		t.Errorf("%d samples are left of %d", n, begun)
	}
	runs, err := s.List(t.Context(), Filter{})
	if err != nil || len(runs) != begun {
		t.Fatalf("%d runs of %d, %v", len(runs), begun, err)
	}
	for i, r := range runs[1:] {
		if r.StartedAt.After(runs[i].StartedAt) {
			t.Errorf("%v is behind %v", r.StartedAt, runs[i].StartedAt)
		}
	}
	if past, err := s.Past(t.Context(), runs[0].PathKey, "up", time.Unix(0, 0), runs[0].StartedAt); err != nil ||
		len(past) != begun-1 {
		t.Errorf("%d results before the newest, %v", len(past), err)
	}
	for _, n := range []int{-60 * year, 240 * year} {
		if add(n) == nil {
			t.Errorf("a result of the year %d is kept", begin.Year()+n/year)
		}
	}
}

// TestAdd_RejectsForeignIDs: identifiers of another form could not be named in commands.
func TestAdd_RejectsForeignIDs(t *testing.T) { both(t, testRejectsForeignIDs) }

func testRejectsForeignIDs(t *testing.T, at func() *Store) {
	s := at()
	good := measured(t, 1, "b", 5e6)
	doc := must.Get(record.Decode(good, nil))(t)
	e := doc.Head().Envelope
	for _, c := range []struct{ was, is string }{{e.ID, strings.ToUpper(e.ID)}, {e.ID, "last"}, {e.ID, "../../etc/x"},
		{e.ID, "' OR 1=1 --"}, {e.ID, e.ID + "0"}, {e.PathKey, "x"}, {e.PathKey, strings.Repeat("p", 100_000)}} {
		if added, err := s.Add(t.Context(), bytes.ReplaceAll(good, []byte(c.was), []byte(c.is)), nil); added || err == nil {
			t.Errorf("%.40q is kept", c.is)
		}
	}
	if added, err := s.Add(t.Context(), good, nil); !added || err != nil {
		t.Errorf("%v, %v", added, err)
	}
}

// TestAdd_AnyCharacter: text with characters that PostgreSQL does not allow is stored too.
func TestAdd_AnyCharacter(t *testing.T) {
	both(t, func(t *testing.T, at func() *Store) {
		s := at()
		doc := measured(t, 1, "a\x00b\u202e ; DROP TABLE run; --", 5e6)
		if added, err := s.Add(t.Context(), doc, nil); !added || err != nil {
			t.Fatal(added, err)
		}
		runs, err := s.List(t.Context(), Filter{Path: "a\ufffdb\u202e ; DROP TABLE run; --"})
		if err != nil || len(runs) != 1 {
			t.Fatalf("%+v, %v", runs, err)
		}
		if got, _, err := s.Get(t.Context(), runs[0].ID); err != nil || !bytes.Equal(got, doc) {
			t.Errorf("%s, %v", got, err)
		}
	})
}
