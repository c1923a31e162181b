package text

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/remedy"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Whatever the verdict, what to do about it can be said.
func TestEveryFixHasASentence(t *testing.T) {
	subtypes := []string{"", verdict.Unscaled, verdict.Stuck, verdict.Fixed, verdict.AutotuneGrowing, verdict.Policer}
	for _, name := range verdict.Names() {
		for _, subtype := range subtypes {
			fixes := report.Fixes(verdict.Verdict{Limiter: name, Subtype: subtype, Candidates: verdict.Names()},
				report.FixFacts{GoodputBps: 1e6})
			if len(fixes) == 0 {
				t.Errorf("%s (%s): nothing to do", name, subtype)
			}
			for _, f := range fixes {
				if FixSentence(f) == "" || f.Source == "" {
					t.Errorf("%s (%s): %+v", name, subtype, f)
				}
			}
			if remedy.Open(name) && fixes[0].Scope != remedy.Nowhere {
				t.Errorf("%s: one guess's fix, %+v", name, fixes[0])
			}
		}
	}
}

func TestEveryLimiterIsExplained(t *testing.T) {
	for _, name := range verdict.Names() {
		d, ok := ExplainLimiter(name)
		if !ok || d.What == "" || d.Looks == "" || d.Sure == "" || len(d.Fix) == 0 {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if _, ok := ExplainLimiter("tcp_rmem"); ok {
		t.Error("a parameter is no limiter")
	}
}
