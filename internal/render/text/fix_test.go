package text

import (
	"strings"
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
		if !ok || d.What == "" || d.Looks == "" || d.Sure == "" || d.Lab == "" || len(d.Fix) == 0 {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if _, ok := ExplainLimiter("tcp_rmem"); ok {
		t.Error("a parameter is no limiter")
	}
}

// A verdict of low confidence is no ground for an instruction.
func TestLowConfidenceMakesACondition(t *testing.T) {
	for confidence, want := range map[verdict.Confidence]string{verdict.Low: "if it is bottleneck: nothing to tune",
		verdict.High: "nothing to tune"} {
		v := verdict.Verdict{Limiter: verdict.Bottleneck, Confidence: confidence}
		if got := doAbout(nil, v); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q first", confidence, got, want)
		}
	}
	for _, open := range []verdict.Name{verdict.Unknown, verdict.Mixed, verdict.Sender} {
		if got := doAbout(nil, verdict.Verdict{Limiter: open, Confidence: verdict.Low}); strings.HasPrefix(got, "if it is") {
			t.Errorf("%s: %q", open, got)
		}
	}
}
