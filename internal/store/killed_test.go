package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/store/pgtest"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// writerVariable makes the test binary a writer; its value is the first number to store.
const writerVariable = "FULLPIPE_TEST_WRITER"

// writeOn stores records and prints their numbers until it is killed.
func writeOn() {
	ctx := context.Background()
	s, err := OpenAt(ctx, os.Args[1], os.Args[2])
	n, _ := strconv.Atoi(os.Getenv(writerVariable))
	for ; err == nil; n++ {
		var doc []byte
		doc, err = document(n, "b", 1e6)
		if err == nil {
			err = s.Keep(ctx, doc, []byte(`{"series":[]}`))
		}
		if err == nil {
			fmt.Println(n)
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

// TestStore_KilledWriter: a writer that is killed at any moment loses no confirmed record and leaves no partial
// one; the next writer continues.
func TestStore_KilledWriter(t *testing.T) {
	test := func(t *testing.T, url string) {
		dir, next := t.TempDir(), 0
		for round := range 12 {
			writer := exec.Command(os.Args[0], dir, url)
			writer.Env = append(os.Environ(), fmt.Sprint(writerVariable, "=", next))
			out := must.Get(writer.StdoutPipe())(t)
			must.Do(t, writer.Start())
			last := next + 1 + round%5
			lines := bufio.NewScanner(out)
			for next < last && lines.Scan() {
				if n, err := strconv.Atoi(lines.Text()); err != nil || n != next {
					t.Fatalf("%s", lines.Text())
				}
				next++
			}
			writer.Process.Kill()
			for lines.Scan() { // numbers printed before the kill
				next++
			}
			writer.Wait()
			if next < last {
				t.Fatal("the writer ended by itself")
			}
		}
		s := must.Get(OpenAt(t.Context(), dir, url))(t)
		defer s.Close()
		if err := s.Deliver(t.Context()); err != nil {
			t.Error(err)
		}
		runs, err := s.List(t.Context(), Filter{})
		if err != nil || len(runs) != next && len(runs) != next+1 {
			t.Errorf("%d runs of %d, %v", len(runs), next, err)
		}
		for i, r := range runs {
			_, samples, err := s.Get(t.Context(), r.ID)
			if err != nil || len(samples) == 0 || len(r.Directions) != 1 || r.Labels["site"] != "b" {
				t.Errorf("%+v, %s, %v", r, samples, err)
			}
			if i > 0 && runs[i-1].StartedAt.Sub(r.StartedAt) != time.Hour {
				t.Errorf("between %v and %v one is missing", r.StartedAt, runs[i-1].StartedAt)
			}
		}
	}
	t.Run("sqlite", func(t *testing.T) { test(t, "") })
	t.Run("postgres", func(t *testing.T) { test(t, pgtest.Shared(t).URL(t)) })
}
