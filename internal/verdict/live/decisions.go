package live

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
)

// decision is a rule that names the limiter by the facts F alone. In a list the first one that applies decides.
type decision[F any] struct {
	name       string
	when       rule.Condition[F]
	limiter    verdict.Name
	confidence verdict.Confidence
	candidates []verdict.Name
	code       verdict.Code // "" where nothing can be said
}

// decide returns the first rule of a list that applies. The last one always applies.
func decide[F any](rules []decision[F], facts F) *decision[F] {
	return &rules[slices.IndexFunc(rules, func(d decision[F]) bool { return d.when.IsTrue(facts) })]
}

// listDecisions describes a list.
func listDecisions[F any](title string, rules []decision[F]) rule.List {
	l := rule.List{Title: title}
	for i := range rules {
		d := &rules[i]
		outcome := string(d.limiter) + ", " + string(d.confidence)
		if len(d.candidates) > 0 {
			outcome += "; candidates " + verdict.Join(d.candidates, ", ")
		}
		rule.Add(&l, d.name, d.when, outcome)
	}
	return l
}
