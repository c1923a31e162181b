package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestClaims(t *testing.T) {
	for name, c := range map[string]struct {
		claims []string
		want   string
	}{
		"equal":                     {[]string{"at least 5 x", "at least 5 x"}, "at least 5 x"},
		"one word differs":          {[]string{"cpu in all", "pacing in all", "cpu in all"}, "… in all"},
		"another word differs":      {[]string{"a b", "a c", "d b"}, "a …; d b"},
		"another number of words":   {[]string{"within 2 %", "within 2 % of it"}, "within 2 %; within 2 % of it"},
		"the same word, two groups": {[]string{"up 1", "up 2", "down 1", "down 2"}, "up …; down …"},
	} {
		t.Run(name, func(t *testing.T) {
			var rows []row
			for _, text := range c.claims {
				rows = append(rows, row{Claim: text})
			}
			var got []string
			for _, claim := range claims(rows) {
				got = append(got, claim.text())
			}
			if all := strings.Join(got, "; "); all != c.want {
				t.Errorf("%s, want %s", all, c.want)
			}
		})
	}
}

func TestWorst(t *testing.T) {
	for name, c := range map[string]struct {
		claim    string
		measured []string
		verdicts []string
		want     int
	}{
		"lower limit":              {"carries ≥ 99 % of the rate", []string{"99.9 %", "99.2 %", "100.1 %"}, nil, 1},
		"upper limit":              {"below 200 MB", []string{"131 MB", "173 MB", "90 MB"}, nil, 1},
		"both sides":               {"goodput within 1 %", []string{"+0.2 %", "-0.7 %", "+0.5 %"}, nil, 1},
		"share":                    {"right in at least 90 %", []string{"9 of 10", "19 of 20"}, nil, 0},
		"a failure first":          {"at least 5 ×", []string{"4.0 ×", "5.5 ×"}, []string{"pass", "fail"}, 1},
		"inconclusive before pass": {"at least 5 ×", []string{"4.0 ×", "5.5 ×"}, []string{"pass", "inconclusive"}, 1},
		"no figure":                {"sign-off: pass", []string{"pass", "pass"}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var rows []row
			for i, measured := range c.measured {
				r := row{Claim: c.claim, Measured: measured, Verdict: "pass"}
				if c.verdicts != nil {
					r.Verdict = c.verdicts[i]
				}
				rows = append(rows, r)
			}
			if got := worst(rows); got != rows[c.want] {
				t.Errorf("%+v, want %+v", got, rows[c.want])
			}
		})
	}
}

func TestPage(t *testing.T) {
	rows := strings.Join([]string{
		`{"section":"lab","case":"a","claim":"≥ 99 %","measured":"99.9 %","verdict":"pass","at":"2026-11-21 10:00 UTC",` +
			`"command":"make bank RUN=TestBankLab","machine":"m"}`,
		`{"section":"lab","case":"b","claim":"≥ 99 %","measured":"99.5 %","spread":"99.4 to 99.6 %","verdict":"pass",` +
			`"at":"2026-11-22 10:00 UTC","command":"go test -run TestBankLab","machine":"m"}`,
		`{"section":"tune","case":"c|d","claim":"fast","measured":"9 s","verdict":"fail","at":"2026-11-22 10:00 UTC",` +
			`"command":"x","machine":"n"}`,
	}, "\n")
	var out strings.Builder
	if err := page(strings.NewReader(rows), &out); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out.String(), "Machines: ")
	want := `m; n.

| what, against what | cases | result | spread | verdict |
|---|---|---|---|---|
| **lab** | 2 of 2 pass | ` + "`make bank RUN=TestBankLab`" + ` | 2026-11-21 to 2026-11-22 | |
| ≥ 99 % | 2 of 2 pass; worst: b | 99.5 % | 99.4 to 99.6 % | pass |
| **tune** | 0 of 1 pass | ` + "`x`" + ` | 2026-11-22 | |
| fast | c\|d | 9 s |  | fail |

## Rows with the verdict *fail*

- tune, c\|d. Claim: fast. Result: 9 s

## Rows with the verdict *inconclusive*

None.
`
	if got != want {
		t.Errorf("%s", got)
	}
}

// TestPageIsCurrent checks docs/benchmarks.md against the rows, and that it is one page.
func TestPageIsCurrent(t *testing.T) {
	rows, err := os.Open("../benchmarks.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var want bytes.Buffer
	if err := page(rows, &want); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("docs/benchmarks.md does not show bench/benchmarks.jsonl: run bankdoc, as make bank does")
	}
	if n := bytes.Count(got, []byte("\n")); n > 200 {
		t.Errorf("docs/benchmarks.md has %d lines, 200 are allowed", n)
	}
}
