package mcp

import (
	"strings"
	"testing"
)

// TestResults_OfLimits checks the results of commands that were ended at a limit.
func TestResults_OfLimits(t *testing.T) {
	for name, c := range map[string]struct {
		outcome outcome
		failed  bool
		want    string
	}{
		"too long": {outcome{tooLong: true}, true, "has more than"},
		"nothing":  {outcome{timeout: true}, true, "before there was a result"},
		"incomplete": {outcome{timeout: true, output: storedDocument(t, "diagnose")}, false,
			"before the result was complete"},
		"complete":       {outcome{output: storedDocument(t, "diagnose")}, false, ""},
		"another object": {outcome{output: []byte(`{"a":"` + strings.Repeat("x", maxStructured) + `"}`)}, true, "at most"},
	} {
		r, err := decoded(c.outcome, 10)
		if err != nil || r.Failed != c.failed || !strings.Contains(r.Text[1], c.want) || len(r.Text[1]) > maxData*2 {
			t.Errorf("%s: %v, %.300v", name, err, r)
		}
	}
	if r, err := decoded(outcome{output: []byte("no JSON")}, 10); err == nil {
		t.Errorf("%v", r)
	}
}
