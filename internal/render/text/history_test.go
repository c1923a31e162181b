package text

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search"
)

// TestHistory_TuneDecision checks that the list of runs has a tune's decision before its labels.
func TestHistory_TuneDecision(t *testing.T) {
	for _, c := range []struct {
		verdict  search.Verdict
		strength search.Strength
		want     string
	}{
		{search.Change, search.Shown, "change shown to help site=a"},
		{search.Change, search.Likely, "change likely to help site=a"},
		{search.NoChange, search.Shown, "no change, shown site=a"},
		{search.Inconclusive, search.Open, "undecided site=a"},
		{"", "", "bottleneck  site=a"},
	} {
		var out strings.Builder
		bps := 5e6
		History(&out, &record.History{Runs: []record.HistoryRun{{Kind: "tune", Outcome: record.Done,
			Labels: map[string]string{"site": "a"}, Directions: []record.Figure{{Direction: "up", GoodputBps: &bps,
				Limiter: "bottleneck", Verdict: c.verdict, Strength: c.strength}}}}})
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("%s, %s:\n%s", c.verdict, c.strength, out.String())
		}
	}
}
