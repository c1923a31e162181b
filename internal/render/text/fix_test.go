package text

import (
	"io"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestEveryFixHasASentence checks that every verdict has a remedy with a sentence and a source.
func TestEveryFixHasASentence(t *testing.T) {
	for _, name := range verdict.Names() {
		for _, subtype := range append(verdict.Subtypes(name), "") {
			fixes := advice.Fixes(verdict.Verdict{Limiter: name, Subtype: subtype, Candidates: verdict.Names()},
				advice.Facts{GoodputBps: 1e6})
			if len(fixes) == 0 {
				t.Errorf("%s (%s): nothing to do", name, subtype)
			}
			for _, f := range fixes {
				if FixSentence(f) == "" || f.Source == "" {
					t.Errorf("%s (%s): %+v", name, subtype, f)
				}
			}
			if advice.Open(name) && fixes[0].Scope != advice.Nowhere {
				t.Errorf("%s: one guess's fix, %+v", name, fixes[0])
			}
		}
	}
}

// TestCommands_PrintARemedy checks that each command prints the first remedy of every verdict, and for candidates a
// measurement that decides between them.
func TestCommands_PrintARemedy(t *testing.T) {
	moved, rate := int64(minJudgedBytes), 1e6
	written := func(write func(io.Writer)) string {
		var out strings.Builder
		write(&out)
		return out.String()
	}
	commands := map[string]func(verdict.Verdict, []advice.Fix) string{
		"measure": func(v verdict.Verdict, fix []advice.Fix) string {
			return written(func(w io.Writer) { writeDirection(w, &record.Direction{Verdict: v, Fix: fix}) })
		},
		"exec": func(v verdict.Verdict, fix []advice.Fix) string {
			return written(func(w io.Writer) {
				writeExecAction(w, []record.Direction{{Bytes: &moved, Verdict: v, Fix: fix}})
			})
		},
		"diagnose": func(v verdict.Verdict, fix []advice.Fix) string {
			return CapturedDirectionRemedy(&record.CapturedDirection{Verdict: v, Fix: fix})
		},
		"rfc6349": func(_ verdict.Verdict, fix []advice.Fix) string {
			return written(func(w io.Writer) { writeRFC6349Direction(w, &record.RFC6349Direction{Fix: fix}) })
		},
		"sweep": func(v verdict.Verdict, fix []advice.Fix) string {
			return strings.Join(SweepFindings(&record.Sweep{Paths: []record.SweepPath{{Fix: fix}},
				Cells: []record.SweepCell{{Best: true, GoodputBps: rate, Limiter: v.Limiter, Subtype: v.Subtype}}}), "\n")
		},
		"watch": func(v verdict.Verdict, fix []advice.Fix) string {
			return Advice(&record.WatchedDirection{Verdict: v, Fix: fix})
		},
		"tune": func(v verdict.Verdict, fix []advice.Fix) string {
			return tuneDo(&record.TuneDirection{Fix: fix, Before: record.TuneMeasured{Direction: record.Direction{Verdict: v}}})
		},
	}
	oneLine := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for _, name := range verdict.Names() {
		for _, subtype := range append(verdict.Subtypes(name), "") {
			for _, confidence := range []verdict.Confidence{verdict.High, verdict.Low} {
				v := verdict.Verdict{Limiter: name, Subtype: subtype, Confidence: confidence}
				if confidence == verdict.Low {
					v.Candidates = verdict.Names()[:4]
				}
				fixes := advice.Fixes(v, advice.Facts{})
				if confidence == verdict.Low && !strings.HasPrefix(FixSentence(fixes[0]), "to find out: ") {
					t.Errorf("%s (%s), %s of %v: %q is one guess's", name, subtype, confidence, v.Candidates, FixSentence(fixes[0]))
				}
				for command, say := range commands {
					if said := oneLine(say(v, fixes)); !strings.Contains(said, oneLine(FixSentence(fixes[0]))) {
						t.Errorf("%s of %s (%s), %s: %q lacks %q", command, name, subtype, confidence, said, FixSentence(fixes[0]))
					}
				}
			}
		}
	}
}

func TestEveryLimiterIsExplained(t *testing.T) {
	for _, name := range verdict.Names() {
		d, ok := ExplainLimiter(string(name), advice.Linux)
		if !ok || d.Description == "" || d.Looks == "" || d.Sure == "" || d.Lab == "" || len(d.Fix) == 0 {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if _, ok := ExplainLimiter("tcp_rmem", advice.Linux); ok {
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

// An option of ours is said as it is given.
func TestAnOptionIsSaidAsItIsGiven(t *testing.T) {
	fix := advice.Fix{Action: advice.LargerBudget, Settings: []plan.Setting{{Name: "--budget", Value: "3m"}}}
	if got := do([]advice.Fix{fix}); !strings.HasSuffix(got, "(--budget 3m)") {
		t.Error(got)
	}
}

func TestFixSentence_NamesTheCeilingOfAFullAutomaticBuffer(t *testing.T) {
	v := verdict.Verdict{Limiter: verdict.SendBuffer}
	for want, facts := range map[string]advice.Facts{
		"raise net.ipv4.tcp_wmem (max) on the sender: 4 MiB now, 23.8 MiB needed": {SendBufferMax: 4 << 20, PathBps: 500e6,
			RTTS: 0.2, MSSBytes: 1448},
		"raise net.ipv4.tcp_wmem (max) on the sender: 4 MiB now; fullpipe tune finds how much it needs": {
			SendBufferMax: 4 << 20},
	} {
		if got := FixSentence(advice.Fixes(v, facts)[0]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	level := advice.Fix{Action: advice.RaiseCeilings, End: advice.Receiver, System: advice.Windows,
		Ceiling: &advice.Ceiling{Name: "autotuninglevel=restricted", Bytes: 1_048_560}}
	for _, part := range []string{"autotuninglevel=normal", "=restricted ends at 1,048,560 bytes", "group policy"} {
		if got := FixSentence(level); !strings.Contains(got, part) {
			t.Errorf("%q lacks %q", got, part)
		}
	}
}
