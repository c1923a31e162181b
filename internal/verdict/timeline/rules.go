package timeline

import (
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
)

// Rules returns the ordered rules by which a capture is judged, as far as they are lists.
func Rules() []rule.List {
	return []rule.List{
		rule.ListCases("Subtype of a limiter by a capture: the first rule of the limiter that applies", subtypes,
			subtype.String),
		rule.ListCases("Candidates by a capture: the first rule of the limiter that applies",
			candidates, names),
		rule.ListCases("Further candidates by a capture: every rule that applies",
			furtherCandidates, names),
		rule.ListCases("Confidence in a limiter by a capture: the first rule of the limiter that applies, else medium",
			levels, func(c verdict.Confidence) string { return string(c) }),
		rule.ListSteps("Lower confidence in any limiter by a capture: every rule that applies",
			steps),
		rule.ListCases("Evidence for a limiter by a capture: the first rule of the limiter that applies", supports,
			finding.String),
		rule.ListCases("Further evidence by a capture: every rule that applies", caveats,
			finding.String)}
}

// names returns limiters as they are printed.
func names(all []verdict.Name) string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = string(n)
	}
	return strings.Join(texts, ", ")
}
