package server

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestConcurrentTests(t *testing.T) {
	var r concurrentTests
	start := time.Now()
	at := func(s int) func() time.Time {
		return func() time.Time { return start.Add(time.Duration(s) * time.Second) }
	}
	now := at(0)
	clock := func() time.Time { return now() }
	check := func(test string, got *transfer.ConcurrentTests, tests int64, seconds int) {
		t.Helper()
		switch {
		case tests == 0 && got != nil:
			t.Errorf("%s: %+v, want none", test, got)
		case tests > 0 && (got == nil || got.Tests != tests || got.Time != time.Duration(seconds)*time.Second):
			t.Errorf("%s: %+v, want %d tests, %d s", test, got, tests, seconds)
		}
	}
	alone := r.begin("alone", clock)
	now = at(5)
	check("alone", alone(), 0, 0)
	check("alone, asked again", alone(), 0, 0)

	now = at(10)
	up, down := r.begin("both ways", clock), r.begin("both ways", clock)
	now = at(12)
	short := r.begin("short", clock)
	now = at(13)
	check("short", short(), 1, 1)
	now = at(15)
	late, later := r.begin("late", clock), r.begin("late", clock)
	third := r.begin("third", clock)
	now = at(18)
	check("up", up(), 3, 1+3)
	now = at(19)
	check("down", down(), 3, 1+4)
	now = at(21)
	check("third", third(), 2, 6)
	now = at(25)
	check("late", late(), 2, 6)
	check("later", later(), 2, 6)
	if len(r.all) != 0 {
		t.Errorf("%d are left", len(r.all))
	}
}
