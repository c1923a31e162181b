package text

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// codes are all of verdict's, read from its source: a new one must not lack its sentence.
func codes(t *testing.T) (all []verdict.Code) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../verdict/codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok {
					code, _ := strconv.Unquote(lit.Value)
					all = append(all, verdict.Code(code))
				}
			}
		}
		return true
	})
	return all
}

func TestEveryCodeHasASentence(t *testing.T) {
	all := codes(t)
	if len(all) < 40 {
		t.Fatalf("only %d codes were found", len(all))
	}
	for _, code := range all {
		if said := Sentence(verdict.Evidence{Code: code, Values: verdict.Values{}}); said == "" || strings.Contains(said,
			"%!") {
			t.Errorf("%s: %q", code, said)
		}
	}
	if len(all) != len(sentences) {
		t.Errorf("%d codes, %d sentences", len(all), len(sentences))
	}
}

// A document of another version may hold codes that nobody here knows.
func TestAForeignCodeKeepsItsText(t *testing.T) {
	if said := Sentence(verdict.Evidence{Code: "from-the-future", Text: "as reported"}); said != "as reported" {
		t.Error(said)
	}
}

// TestEqualsBDP_OnlyMeasuredValues checks that the sentence claims no gaps only if gaps could be measured.
func TestEqualsBDP_OnlyMeasuredValues(t *testing.T) {
	f := figures{"window_bytes": 16816, "time_ratio": 0.95, "allows_bps": 2.7e6, "steady_bps": 2.8e6, "rtt_s": 0.055,
		"rtt_base_s": 0.05}
	if s := f.equalsBDP("receive window"); strings.Contains(s, "without a gap") || !strings.Contains(s, "may equal") {
		t.Error(s)
	}
	f["even_ratio"] = 0.95
	if s := f.equalsBDP("receive window"); !strings.Contains(s, "without a gap") {
		t.Error(s)
	}
}

// TestSentence_LinkRateOnlyIfMeasured checks that the link's rate beyond a window appears only if it was measured.
func TestSentence_LinkRateOnlyIfMeasured(t *testing.T) {
	for _, code := range []verdict.Code{verdict.ReceiveWindowFull, verdict.SendBufferFull} {
		if s := sentences[code](figures{"link_least_bps": 8e6}); !strings.Contains(s, "carries at least 8 Mbit/s") {
			t.Error(s)
		}
		if s := sentences[code](figures{}); strings.Contains(s, "link") {
			t.Error(s)
		}
	}
}

// TestSentence_QueueOfItsRoundTrips checks that a full link is not said to have hardly any queue where the mean round
// trip shows one.
func TestSentence_QueueOfItsRoundTrips(t *testing.T) {
	for loaded, want := range map[float64]string{1.1: "comes and goes", 0.65: "without much", 0: "without much"} {
		text := Sentence(verdict.Evidence{Code: verdict.FullLinkNoQueue, Values: verdict.Values{
			"steady_bps": 26.7e3, "best_ratio": 0.97, "rtt_s": loaded, "rtt_base_s": 0.587}})
		if !strings.Contains(text, want) {
			t.Errorf("round trip %v s: %s", loaded, text)
		}
	}
}
