package live

import (
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// TestRules_Complete checks that every rule has a name of its own, an outcome and inputs, and that every threshold has
// a name of its own, a unit and an origin. A list in which the first rule decides ends with one that always applies.
func TestRules_Complete(t *testing.T) {
	named := map[string]*threshold.Number{}
	for _, l := range Rules() {
		var names []string
		for _, r := range l.Rows {
			if r.Name == "" || r.When == "" || r.Outcome == "" || slices.Contains(names, r.Name) {
				t.Errorf("%s: %+v", l.Title, r)
			}
			names = append(names, r.Name)
		}
		for _, in := range l.Inputs {
			if in.Name == "" || in.Means == "" {
				t.Errorf("%s: input %q has no meaning", l.Title, in.Name)
			}
		}
		for _, n := range l.Thresholds {
			if n.Name == "" || n.Unit == "" || n.Origin == "" {
				t.Errorf("%s: %+v lacks a name, a unit or an origin", l.Title, n)
			}
			if other := named[n.Name]; other != nil && other != n {
				t.Errorf("%s: two thresholds %s", l.Title, n.Name)
			}
			named[n.Name] = n
		}
	}
	for name, always := range map[string]bool{
		"network":   networkRules[len(networkRules)-1].when.IsAlways(),
		"remainder": remainderRules[len(remainderRules)-1].when.IsAlways(),
		"datagram":  datagramRules[len(datagramRules)-1].when.IsAlways(),
		"arrival":   arrivalRules[len(arrivalRules)-1].when.IsAlways(),
	} {
		if !always {
			t.Errorf("the last %s rule does not always hold", name)
		}
	}
}
