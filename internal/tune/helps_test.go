package tune

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// The answer is "no" where something limits and nothing that was tried helps; a full link
// leaves nothing to be tried.
func TestHelps(t *testing.T) {
	congested := Measured{Verdict: verdict.Verdict{Limiter: verdict.Congestion}}
	full := Measured{Verdict: verdict.Verdict{Limiter: verdict.Bottleneck}}
	tried := []Remedy{{Name: "bbr"}}
	for _, c := range []struct {
		name string
		d    Direction
		want bool
	}{
		{"a change", Direction{Verdict: search.Change, Chosen: &Chosen{}, Before: congested}, true},
		{"nothing to gain", Direction{Verdict: search.NoChange, Before: congested}, true},
		{"a full link", Direction{Verdict: search.Inconclusive, Goal: Throughput, Before: full}, true},
		{"a full link's queue", Direction{Verdict: search.Inconclusive, Goal: Latency, Before: full}, false},
		{"tried in vain", Direction{Verdict: search.NoChange, Before: congested, Remedies: tried}, false},
		{"not shown", Direction{Verdict: search.Inconclusive, Before: congested}, false},
	} {
		if got := (&Result{Directions: []Direction{c.d}}).Helps(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
