package text

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestNotes_EachCodeHasASentence formats every code of package verdict, with two of everything.
func TestNotes_EachCodeHasASentence(t *testing.T) {
	source, err := os.ReadFile("../../verdict/note.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`\bNoteCode = "(.*)"`).FindAllSubmatch(source, -1)
	if len(codes) < 40 {
		t.Fatalf("%d codes", len(codes))
	}
	for _, m := range codes {
		note := verdict.Note{Code: verdict.NoteCode(m[1]), Words: []string{"one", "two", "three", "four"}}
		if got := noteSentence(&note); got == string(note.Code) || strings.Contains(got, "%!") {
			t.Errorf("%s: %q", note.Code, got)
		}
	}
}

func TestNotes_SingularAndAbsentValues(t *testing.T) {
	for _, c := range []struct {
		code   verdict.NoteCode
		values verdict.Values
		want   string
	}{
		{verdict.RecordsSorted, verdict.Values{"records": 2, "behind_s": 0.002},
			"2 records were behind later ones in the file, by up to 2 ms, and were sorted by their times"},
		{verdict.RecordsSorted, verdict.Values{"records": 2},
			"2 records were behind later ones in the file and were sorted by their times"},
		{verdict.RecordsSorted, verdict.Values{"records": 1},
			"1 record was behind a later one in the file and was sorted by its time"},
		{verdict.ClockSet, verdict.Values{"times": 1, "step_s": -3},
			"the capturing host's clock was set 1 time, by up to 3 s back; the times of this " +
				"result are corrected for that"},
		{verdict.ClockSet, verdict.Values{"times": 2},
			"the capturing host's clock was set 2 times; the times of this result are " +
				"corrected for that"},
		{verdict.UnknownLink, verdict.Values{"packets": 2, "link_type": 147},
			"2 packets are of link type 147, which is not known here (tcpdump.org/linktypes.html names it)"},
		{verdict.OutsideLists, verdict.Values{"every_s": 0.25},
			"bytes that connections moved before their first list and after their last (every 250ms)"},
		{verdict.DumpsFailed, verdict.Values{"dumps": 1}, "1 dump, for which the kernel had no memory or no time"},
	} {
		if got := noteSentence(&verdict.Note{Code: c.code, Values: c.values}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
