package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/outbox"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// noise returns text that does not compress well.
func noise(n int, seed uint64) string {
	rng := rand.New(rand.NewPCG(seed, 1))
	text := make([]byte, n)
	for i := range text {
		text[i] = byte('a' + rng.IntN(26))
	}
	return string(text)
}

// addAll adds count results of a far end, one an hour from hour first.
func addAll(t *testing.T, s *Store, first, count int, far func(n int) string, samples string) {
	t.Helper()
	for n := first; n < first+count; n++ {
		var with []byte
		if samples != "" {
			with = []byte(`{"x":"` + samples + `"}`)
		}
		if added, err := s.Add(t.Context(), measured(t, n, far(n), 1e6), with); err != nil || !added {
			t.Fatal(n, added, err)
		}
	}
}

func ofOwner(int) string { return "b" }

// ofClient returns a client whose address differs in each result.
func ofClient(n int) string { return fmt.Sprintf("browser://2001:db8:%x::1", n) }

// counts returns the numbers of the owner's results and samples and of clients' results.
func counts(t *testing.T, s *Store) (owner, samples, client int) {
	t.Helper()
	for sql, into := range map[string]*int{"SELECT count(*) FROM run WHERE client = ''": &owner,
		"SELECT count(*) FROM run WHERE client <> ''": &client, "SELECT count(*) FROM samples": &samples} {
		must.Do(t, s.db.QueryRow(sql).Scan(into))
	}
	return owner, samples, client
}

// used returns the used bytes of the file; 0 for a server.
func used(t *testing.T, s *Store) int64 {
	t.Helper()
	if s.usedBytes == nil {
		return 0
	}
	tx := must.Get(s.db.Begin())(t)
	defer tx.Rollback()
	n := must.Get(s.usedBytes(t.Context(), tx))(t)
	return n
}

const ever = 1e18 // an age that no result reaches

// TestTrim_ClientsTakeNothingFromTheOwner fills a history with the owner's results, then with 20 times as many of
// clients, and trims it by each limit.
func TestTrim_ClientsTakeNothingFromTheOwner(t *testing.T) {
	const own, foreign = 24, 96
	for _, c := range []struct {
		name    string
		keep    func(used int64) Keep
		clients int  // maximum
		inFile  bool // a server's database has no size limit
		allGo   bool // the owner's results alone exceed the limit
	}{
		{"a quarter of the bytes", func(int64) Keep { return Keep{Samples: ever, Runs: ever, Bytes: 4 * 100 << 10} },
			100 << 10 / rowBytes, false, false},
		{"all bytes", func(used int64) Keep { return Keep{Samples: ever, Runs: ever, Bytes: used - 32<<10} }, foreign - 1,
			true, false},
		{"fewer bytes than the owner's take", func(int64) Keep { return Keep{Samples: ever, Runs: ever, Bytes: 64 << 10} },
			0, true, true},
		{"a quarter of the number", func(int64) Keep { return Keep{Samples: ever, Runs: ever, Results: own, Bytes: 1 << 40} },
			own / 4, false, false},
		{"ages, with clients' results as the only younger ones",
			func(int64) Keep {
				return Keep{Samples: foreign / 2 * time.Hour, Runs: foreign / 2 * time.Hour, Bytes: 1 << 40}
			},
			foreign/2 + minNewerRuns, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			both(t, func(t *testing.T, at func() *Store) {
				s := at()
				if s.usedBytes == nil && c.inFile {
					return
				}
				addAll(t, s, 0, own, ofOwner, noise(8<<10, 1))
				addAll(t, s, own, foreign, ofClient, "")
				before := must.Get(s.Days(t.Context(), Filter{Path: "b"}))(t)
				keep := c.keep(used(t, s))
				must.Do(t, s.Trim(t.Context(), begin.Add(1e6*time.Hour), keep))
				owner, samples, client := counts(t, s)
				if !c.allGo && (owner != own || samples != own) {
					t.Errorf("%d results and %d samples of the owner are left of %d", owner, samples, own)
				}
				if client > c.clients || client == 0 && !c.allGo {
					t.Errorf("%d results of clients are left, want at most %d", client, c.clients)
				}
				if n := used(t, s); n > keep.Bytes {
					t.Errorf("%d bytes of %d", n, keep.Bytes)
				}
				days, err := s.Days(t.Context(), Filter{Path: "b"})
				if err != nil || len(days) != len(before) {
					t.Errorf("%d days of the owner's path, were %d: %v", len(days), len(before), err)
				}
				var paths, rolled int
				if err := s.db.QueryRow("SELECT count(*) FROM path WHERE far LIKE 'browser://%'").Scan(&paths); err != nil {
					t.Fatal(err)
				}
				if err := s.db.QueryRow("SELECT count(*) FROM day d JOIN path p ON p.key = d.path WHERE p.far LIKE " +
					"'browser://%'").Scan(&rolled); err != nil {
					t.Fatal(err)
				}
				if paths != client || rolled != 0 {
					t.Errorf("%d paths and %d days of %d results of clients", paths, rolled, client)
				}
			})
		})
	}
}

// TestRowBytes compares the estimate with the real size of a client's result in a file.
func TestRowBytes(t *testing.T) {
	s := open(t, t.TempDir())
	empty := used(t, s)
	const results = 400
	addAll(t, s, 0, results, ofClient, "")
	var documents int64
	must.Do(t, s.db.QueryRow("SELECT sum(bytes) FROM run").Scan(&documents))
	if got := (used(t, s) - empty - documents) / results; got < rowBytes/2 || got > rowBytes {
		t.Errorf("a result takes %d bytes without its document, rowBytes is %d", got, rowBytes)
	}
}

// TestKeep_ClientQuota: the daily quota of a client counts by IPv4 address and by IPv6 /64.
func TestKeep_ClientQuota(t *testing.T) {
	both(t, func(t *testing.T, at func() *Store) {
		s := at()
		s.ClientResultsADay = 3
		n := 0
		keep := func(far string, hour int) (bool, error) {
			n++
			doc := measured(t, hour, far, 1e6)
			e, err := read(doc)
			if err != nil {
				t.Fatal(err)
			}
			id := e.ID[:24] + fmt.Sprintf("%012d", n)
			err = s.Keep(t.Context(), bytes.Replace(doc, []byte(e.ID), []byte(id), 1), nil)
			_, _, missing := s.Get(t.Context(), id)
			return missing == nil, err
		}
		for _, c := range []struct {
			name, far string
			hour      int
			kept      bool
		}{
			{"first", "browser://192.0.2.7", 0, true},
			{"second", "browser://192.0.2.7", 1, true},
			{"third", "browser://192.0.2.7", 2, true},
			{"fourth within 24 hours", "browser://192.0.2.7", 3, false},
			{"another address", "browser://192.0.2.8", 3, true},
			{"the owner", "b", 3, true},
			{"a day after the first", "browser://192.0.2.7", 24, true},
			{"one more", "browser://192.0.2.7", 24, false},
			{"IPv6 first", "browser://2001:db8::1", 24, true},
			{"IPv6 second", "browser://2001:db8::2", 24, true},
			{"IPv6 third", "browser://2001:db8::2:0:0:3", 24, true},
			{"the same /64", "browser://2001:db8::4", 24, false},
			{"another /64", "browser://2001:db8:0:1::4", 24, true},
		} {
			kept, err := keep(c.far, c.hour)
			if kept != c.kept || err != nil && (c.kept || !errors.Is(err, ErrClientQuota)) {
				t.Errorf("%s: kept %v, %v", c.name, kept, err)
			}
		}
		for hour := range 5 { // the owner may import any number
			if added, err := s.Add(t.Context(), measured(t, 100+hour, "browser://192.0.2.9", 1e6), nil); !added || err != nil {
				t.Errorf("import: %v, %v", added, err)
			}
		}
	})
}

// TestOutbox_Clients: during an outage clients get a quarter of the outbox and a daily quota each. Their results
// make room for the owner's, which are delivered first.
func TestOutbox_Clients(t *testing.T) {
	const files = 16
	s := must.Get(OpenAt(t.Context(), t.TempDir(), "postgres://127.0.0.1:1/d"))(t)
	defer s.Close()
	s.outbox.MaxFiles, s.ClientResultsADay = files, 3
	n := 0
	leave := func(far string) error {
		n++
		_, err := s.Leave(measured(t, n, far, 1e6), nil)
		return err
	}
	waits := func() (owner, client int) {
		all := must.Get(s.outbox.List())(t)
		for i, f := range all {
			switch {
			case f.Client != "":
				client++
			case client > 0:
				t.Errorf("number %d is the owner's and waits behind clients'", i)
			default:
				owner++
			}
		}
		return owner, client
	}
	for i := range 5 {
		if err := leave("browser://192.0.2.7"); i < 3 && err != nil || i >= 3 && !errors.Is(err, ErrClientQuota) {
			t.Errorf("result %d of one client: %v", i+1, err)
		}
	}
	for i := range 100 {
		must.Do(t, leave(ofClient(i)))
	}
	if owner, client := waits(); owner != 0 || client != files/outbox.ClientShare {
		t.Errorf("%d and %d wait", owner, client)
	}
	for i := range files {
		if err := leave("b"); err != nil {
			t.Fatalf("the owner's result %d: %v", i+1, err)
		}
	}
	if owner, client := waits(); owner != files || client != 0 {
		t.Errorf("%d of the owner wait and %d of clients", owner, client)
	}
	for _, far := range []string{"b", ofClient(1)} {
		if err := leave(far); err == nil || !strings.Contains(err.Error(), "is full") {
			t.Errorf("%s: one more than fits: %v", far, err)
		}
	}
	if owner, _ := waits(); owner != files {
		t.Errorf("%d of the owner wait", owner)
	}
	s.outbox.MaxFiles, s.outbox.MaxBytes = 1000, 64<<10
	for i := range 100 {
		must.Do(t, leave(ofClient(1000+i)))
	}
	all := must.Get(s.outbox.List())(t)
	var taken int64
	for _, f := range all {
		if f.Client != "" {
			taken += f.Bytes
		}
	}
	if taken == 0 || taken > s.outbox.MaxBytes/outbox.ClientShare {
		t.Errorf("clients' results take %d bytes of %d", taken, s.outbox.MaxBytes)
	}
}

// TestSeal: a result counts as measured here when this host stored it, but not after an import, with or without
// another host's seal.
func TestSeal(t *testing.T) {
	both(t, func(t *testing.T, at func() *Store) {
		s := at()
		here := func(path string) (bool, bool) {
			t.Helper()
			measured := must.Get(s.MeasuredHere(t.Context(), path))(t)
			runs := must.Get(s.List(t.Context(), Filter{Path: path, MeasuredHere: true}))(t)
			return measured, len(runs) == 1
		}
		check := func(name, path string, want bool) {
			t.Helper()
			if ofPath, ofRun := here(path); ofPath != want || ofRun != want {
				t.Errorf("%s: the path %v, its result %v, want %v", name, ofPath, ofRun, want)
			}
		}
		own := measured(t, 1, "b", 1e6)
		must.Do(t, s.Keep(t.Context(), own, nil))
		e := must.Get(read(own))(t)
		check("kept", e.PathKey, true)
		info, err := os.Stat(filepath.Join(s.dir, sealKeyFile))
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("the key: %v, %v", info, err)
		}
		must.Do(t, s.Keep(t.Context(), measured(t, 2, "browser://192.0.2.7", 1e6), nil))
		client := must.Get(read(measured(t, 2, "browser://192.0.2.7", 1e6)))(t)
		check("a client's", client.PathKey, false)
		exported, _, err := s.Get(t.Context(), e.ID)
		if err != nil || strings.Contains(string(exported), sealer{[]byte(e.ID)}.seal("", "")) {
			t.Fatal(err)
		}
		must.Do(t, s.Forget(t.Context(), e.ID))
		must.Get(s.Add(t.Context(), exported, nil))(t)
		check("imported again", e.PathKey, false)
		other := newSealer(t.TempDir(), true)
		for what, seal := range map[string]string{"another host's seal": other.seal(e.ID, e.PathKey),
			"this host's seal of another result": newSealer(s.dir, false).seal(client.ID, e.PathKey),
			"this host's seal of another path":   newSealer(s.dir, false).seal(e.ID, client.PathKey)} {
			must.Get(s.db.Exec("UPDATE run SET seal = $1 WHERE id = $2", seal, e.ID))(t)
			check(what, e.PathKey, false)
		}
	})
}
