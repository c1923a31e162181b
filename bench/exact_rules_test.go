//go:build linux

package bench

import (
	"testing"

	printed "github.com/fullpipe-net/fullpipe/internal/record"
)

// TestLateRunsAreDropped checks that a row drops late runs, and that too many dropped runs leave it open.
func TestLateRunsAreDropped(t *testing.T) {
	for _, c := range []struct {
		late    string // a run each: . exact, L late
		want    int
		asked   int // runs carried out
		verdict string
	}{
		{".....", 5, 5, "pass"},
		{"L.....", 5, 6, "pass"},
		{"LL........", 5, 10, "pass"},
		{"LLLLLLLLLLLLLLLLLLLLL", 5, 19, "inconclusive"},
		{"L....", 1, 5, "pass"},
		{"LL.....", 1, 7, "inconclusive"},
		{".", 1, 1, "pass"},
	} {
		e := exact{want: c.want}
		runs := 0
		for e.more() {
			e.keep(&printed.Late{Believable: c.late[runs] == '.'})
			runs++
		}
		if row := e.into(bankRow{Verdict: "pass"}); runs != c.asked || row.Verdict != c.verdict {
			t.Errorf("%s: %d runs and %s, want %d and %s (%s)", c.late, runs, row.Verdict, c.asked, c.verdict, row.Late)
		}
	}
	for _, decides := range []int{3, 7, 100} { // the number of runs from which the row can be decided
		e := exact{want: 3}
		e.open = func() bool { return e.counted < decides }
		for e.more() {
			e.keep(onTime)
		}
		if want := min((decides+2)/3*3, 3*mostTurns); e.counted != want {
			t.Errorf("decided by %d: %d runs, want %d", decides, e.counted, want)
		}
	}
	none := exact{}
	if none.keep(nil) {
		t.Error("a run whose lab says nothing counts")
	}
}
