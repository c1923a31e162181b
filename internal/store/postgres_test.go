package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/store/pgtest"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestCheckURL_HidesPassword: no error quotes a part of the URL that may be the password.
func TestCheckURL_HidesPassword(t *testing.T) {
	const secret = "s3cr3t"
	for _, url := range []string{"mysql://u:s3cr3t@h/d", "postgres://u:s3cr3t@h:port/d", "postgres://u:s3cr3t/x@h/d",
		"postgres://u:1#s3cr3t@h/d", "postgres://u:1/s3cr3t@h/d", "postgres://u:1?s3cr3t@h/d", "postgres://u:%zzs3cr3t@h/d",
		"host=h password=s3cr3t", "postgres://u:s3cr3t@h/d?sslmode=none", "postgres://u:s3cr3t@h/d?sslrootcert=/no/such",
		"postgres://u@h/d?password=s3cr3t&connect_timeout=x", "postgres:u:s3cr3t@h", "s3cr3t"} {
		s, err := OpenAt(t.Context(), t.TempDir(), url)
		if err == nil {
			s.Close()
			t.Errorf("%s is opened", url)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// silent listens and never replies.
func silent(t *testing.T) string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// TestKeep_UnreachableServer: each failure is one line without the password, the record waits, and it is stored
// once when the server is back.
func TestKeep_UnreachableServer(t *testing.T) {
	server := pgtest.Shared(t)
	good := server.URL(t)
	guarded := strings.Replace(good, "tester@", "guarded:s3cr3t@", 1)
	server.SQL(t, good, "DROP ROLE IF EXISTS guarded; CREATE ROLE guarded LOGIN PASSWORD 'other'")
	dir := t.TempDir()
	for i, c := range []struct{ url, want string }{
		{"postgres://u:s3cr3t@127.0.0.1:1/d", "the history at postgres://127.0.0.1:1/d: connect: connection refused"},
		{"postgres://u:s3cr3t@history.invalid/d?connect_timeout=1", "no address of history.invalid"},
		{"postgres://u:s3cr3t@" + silent(t) + "/d?sslmode=disable&connect_timeout=1", "no answer in time"},
		{guarded, "password authentication failed"},
	} {
		s, err := OpenAt(t.Context(), dir, c.url)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Keep(t.Context(), measured(t, i, "b", 5e6), nil)
		var waiting *Waiting
		if !errors.As(err, &waiting) || waiting.Results != i+1 || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", c.url, err)
		}
		s.Close()
	}
	files, _ := filepath.Glob(filepath.Join(dir, "outbox", "*"))
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	s := must.Get(OpenAt(t.Context(), dir, good))(t)
	defer s.Close()
	for range 2 {
		if err := s.Keep(t.Context(), measured(t, 4, "b", 5e6), []byte(`{"series":[]}`)); err != nil {
			t.Error(err)
		}
	}
	if runs, err := s.List(t.Context(), Filter{}); err != nil || len(runs) != 5 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	rows, err := s.db.Query("SELECT started_ns FROM run ORDER BY ctid") // in insertion order
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for last := int64(0); rows.Next(); {
		var at int64
		if err := rows.Scan(&at); err != nil || at < last {
			t.Errorf("%d came after %d: %v", at, last, err)
		}
		last = at
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "outbox", "*")); len(files) != 0 {
		t.Errorf("%d still wait", len(files))
	}
}

// TestOutbox_Bounded: the outbox has a limit, and a file that is no result does not block it.
func TestOutbox_Bounded(t *testing.T) {
	dir := t.TempDir()
	away := must.Get(OpenAt(t.Context(), dir, "postgres://127.0.0.1:1/d"))(t)
	defer away.Close()
	away.outbox.MaxFiles = 3
	var waiting *Waiting
	if err := away.Keep(t.Context(), measured(t, 0, "b", 5e6), nil); !errors.As(err, &waiting) {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := away.Keep(t.Context(), measured(t, i, "b", 5e6), nil); !errors.As(err, &waiting) {
			t.Fatal(err)
		}
	}
	if waiting.Results != 3 {
		t.Errorf("%d wait", waiting.Results)
	}
	if err := away.Keep(t.Context(), measured(t, 3, "b", 5e6), nil); err == nil || errors.As(err, new(*Waiting)) ||
		!strings.Contains(err.Error(), "is full") {
		t.Errorf("one more than fits: %v", err)
	}
	garbage := filepath.Join(dir, "outbox", strings.Repeat("0", 19)+"-x.result")
	must.Do(t, os.WriteFile(garbage, []byte("fullpipe outbox 1 5 -4\n{"), 0o600))
	s := must.Get(OpenAt(t.Context(), dir, pgtest.Shared(t).URL(t)))(t)
	defer s.Close()
	if err := s.Deliver(t.Context()); !errors.As(err, &waiting) || waiting.Results != 1 {
		t.Errorf("%v", err)
	}
	if runs, err := s.List(t.Context(), Filter{}); err != nil || len(runs) != 3 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
}

// TestStore_WithoutPreparedStatements: transaction poolers need this.
func TestStore_WithoutPreparedStatements(t *testing.T) {
	for _, mode := range []string{"exec", "simple_protocol"} {
		url := pgtest.Shared(t).URL(t) + "&default_query_exec_mode=" + mode
		testKeepsDocumentUnchanged(t, func() *Store {
			s := must.Get(OpenAt(t.Context(), t.TempDir(), url))(t)
			t.Cleanup(func() { s.Close() })
			return s
		})
	}
}

func TestOpenAt_RejectsNewerHistory(t *testing.T) {
	url := pgtest.Shared(t).URL(t)
	s, err := OpenAt(t.Context(), t.TempDir(), url)
	if err != nil {
		t.Fatal(err)
	}
	must.Get(s.List(t.Context(), Filter{}))(t)
	setVersion(t, s, 99)
	s.Close()
	s, err = OpenAt(t.Context(), t.TempDir(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Keep(t.Context(), measured(t, 1, "b", 5e6), nil); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("a newer history: %v", err)
	}
}

// TestStore_ServerRestarted: several writers during clean stops and crashes of the server; every result is stored
// once.
func TestStore_ServerRestarted(t *testing.T) {
	server := pgtest.Shared(t)
	url := server.URL(t)
	const users, runs = 4, 40
	docs := make([][]byte, users*runs)
	for i := range docs {
		docs[i] = measured(t, i, "b", 1e6)
	}
	kept := make(chan struct{}, len(docs))
	problems := make(chan error, len(docs))
	dirs := make([]string, users)
	var wait sync.WaitGroup
	for u := range users {
		dirs[u] = t.TempDir()
		wait.Go(func() {
			s, err := OpenAt(t.Context(), dirs[u], url)
			if err != nil {
				problems <- err
				return
			}
			defer s.Close()
			for i := range runs {
				err := s.Keep(t.Context(), docs[u*runs+i], nil)
				if waiting := (*Waiting)(nil); err != nil && !errors.As(err, &waiting) {
					problems <- fmt.Errorf("user %d: %w", u, err)
				}
				kept <- struct{}{}
			}
		})
	}
	for _, mode := range []string{"immediate", "kill", "fast"} {
		for range len(docs) / 5 {
			<-kept
		}
		server.Stop(t, mode)
		server.Restart(t)
	}
	wait.Wait()
	close(problems)
	for err := range problems {
		t.Error(err)
	}
	for _, dir := range dirs {
		s, err := OpenAt(t.Context(), dir, url)
		if err == nil {
			err = s.Deliver(t.Context())
			s.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
	s := must.Get(OpenAt(t.Context(), t.TempDir(), url))(t)
	defer s.Close()
	if all, err := s.List(t.Context(), Filter{}); err != nil || len(all) != len(docs) {
		t.Errorf("%d runs of %d, %v", len(all), len(docs), err)
	}
}

// TestTrim_ConcurrentWriters: writers during a trim lose nothing, and nothing counts twice.
func TestTrim_ConcurrentWriters(t *testing.T) {
	url := pgtest.Shared(t).URL(t)
	const users, runs, stay = 4, 40, 20
	var counted atomic.Int64
	var wait sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for u := range users {
		wait.Go(func() {
			s, err := OpenAt(ctx, "", url)
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			for i := range runs {
				added, err := s.Add(ctx, measured(t, i*users+u, "b", 1e6), nil)
				if added {
					counted.Add(1)
				} else if !errors.Is(err, ErrGone) {
					t.Error(err)
				}
				if err := s.Trim(ctx, begin, Keep{Samples: 1e18, Runs: 1e18, Results: stay}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	s := must.Get(OpenAt(ctx, "", url))(t)
	defer s.Close()
	days, err := s.Days(ctx, Filter{})
	n := 0
	for _, d := range days {
		n += d.Runs
	}
	if err != nil || int64(n) != counted.Load() || n < stay {
		t.Errorf("%d results of %d, %v", n, counted.Load(), err)
	}
}
