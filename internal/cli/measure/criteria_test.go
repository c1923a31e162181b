package measure

import (
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestCriteria_FailOnReadsBothSpellings gives --fail-on a subtype's word of documents and its word for people.
func TestCriteria_FailOnReadsBothSpellings(t *testing.T) {
	ceiling := verdict.Verdict{Limiter: verdict.ReceiverWindow, Subtype: verdict.AutotuneCeiling}
	zero := verdict.Verdict{Limiter: verdict.ReceiverWindow, Subtype: verdict.ScaleZero}
	for _, c := range []struct {
		on     string
		found  verdict.Verdict
		passed bool
	}{
		{"receiver-window/autotune-ceiling", ceiling, false},
		{"receiver-window/stuck", ceiling, false},
		{"receiver-window/scale-0", zero, false},
		{"receiver-window/factor-0", zero, false},
		{"receiver-window", zero, false},
		{"receiver-window/scale-0", ceiling, true},
		{"receiver-window/stuck", zero, true},
	} {
		criteria := criteriaFlags{on: []string{c.on}}
		if err := criteria.check(); err != nil {
			t.Fatal(c.on, err)
		}
		got := criteria.judge(transfer.Up, nil, c.found)
		if len(got) != 1 || got[0].Passed != c.passed || got[0].Limiter != "receiver-window/"+c.found.Subtype {
			t.Errorf("%s, %s: %+v", c.on, c.found.Subtype, got)
		}
		if slices.ContainsFunc(got[0].Refused, func(s string) bool { return strings.HasSuffix(s, "-ceiling") }) {
			t.Errorf("%s: the document has %s", c.on, got[0].Refused)
		}
	}
}

func TestCriteria_FailOnRejectsUnknownWords(t *testing.T) {
	for _, on := range []string{"receiver-window/scale-1", "congestion/stuck", "stuck", "receiver-window/"} {
		criteria := criteriaFlags{on: []string{on}}
		if err := criteria.check(); err == nil {
			t.Errorf("%q is accepted", on)
		}
	}
}
