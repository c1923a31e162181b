package advice

import (
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func TestEveryLimiterHasSteps(t *testing.T) {
	for _, name := range verdict.Names() {
		if _, ok := table[key{name, ""}]; !ok {
			t.Errorf("%s: nothing to do about it", name)
		}
	}
	for k, steps := range table {
		if len(steps) == 0 {
			t.Errorf("%v: no step", k)
		}
		seen := map[Action]bool{}
		for _, s := range steps {
			if s.Source == "" || s.Action == "" || s.End == "" || seen[s.Action] {
				t.Errorf("%v: %+v", k, s)
			}
			seen[s.Action] = true
		}
	}
}

func TestStreamsComeLast(t *testing.T) {
	for k, steps := range table {
		last := -1
		for i, s := range steps {
			if slices.Contains([]Action{OtherControl, WindowOfBDP, LargerWindows, NoDelay}, s.Action) {
				last = i
			}
		}
		for i, s := range steps {
			if s.Action == ParallelFlows && i < last {
				t.Errorf("%v: streams, which take from a neighbour, come before %s", k, steps[last].Action)
			}
		}
	}
}

func TestASubtypeFallsBackToItsLimiter(t *testing.T) {
	if got := For(verdict.Congestion, "no such"); got[0].Action != OtherControl {
		t.Errorf("%+v", got)
	}
	if got := For("no such", ""); len(got) == 0 {
		t.Error("nothing for a limiter that nobody knows")
	}
}
