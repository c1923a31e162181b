package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Rules writes the page of a judge's rules, as Markdown: the rules in their order, then their inputs.
func Rules(w io.Writer, lists []rule.List) {
	fmt.Fprint(w, `# Verdict rules

These are the rules by which a transfer is judged from the samples of its ends, in their order, and those on the
subtype, candidates, confidence and evidence of a verdict on a capture.
`+"`fullpipe explain --rules`"+` prints this page from the rules that the judge evaluates. how-verdicts-are-reached.md explains
them.
`)
	var inputs []rule.Input
	var thresholds []*threshold.Number
	for _, l := range lists {
		fmt.Fprintf(w, "\n## %s\n\n", l.Title)
		for i, r := range l.Rows {
			fmt.Fprintf(w, "%d. `%s`\n   - when: `%s`\n   - then: %s\n", i+1, r.Name, r.When, r.Outcome)
		}
		inputs = append(inputs, l.Inputs...)
		thresholds = append(thresholds, l.Thresholds...)
	}
	fmt.Fprint(w, "\n## Conditions\n\n")
	inputs = sorted(inputs, func(in rule.Input) string { return in.Name })
	for _, in := range inputs {
		if in.Definition != "" {
			fmt.Fprintf(w, "- `%s`: %s: `%s`\n", in.Name, in.Means, in.Definition)
		}
	}
	fmt.Fprint(w, "\n## Inputs\n\n| input | unit | meaning | thresholds in it |\n|---|---|---|---|\n")
	for _, in := range inputs {
		if in.Definition == "" {
			uses := make([]string, len(in.Uses))
			for i, n := range in.Uses {
				uses[i] = n.Name
			}
			fmt.Fprintf(w, "| %s | %s | %s | %s |\n", in.Name, in.Unit, in.Means, strings.Join(uses, ", "))
		}
	}
	fmt.Fprint(w, "\n## Thresholds\n\n| threshold | value | unit | origin |\n|---|---|---|---|\n")
	for _, n := range sorted(thresholds, func(n *threshold.Number) string { return n.Name }) {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", n.Name, n.Text(), n.Unit, n.Origin)
	}
}

// sorted returns the items by name, each once.
func sorted[T any](all []T, name func(T) string) []T {
	slices.SortStableFunc(all, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	return slices.CompactFunc(all, func(a, b T) bool { return name(a) == name(b) })
}
