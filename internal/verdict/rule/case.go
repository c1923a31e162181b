package rule

import "github.com/fullpipe-net/fullpipe/internal/verdict"

// Case is a rule on verdicts of one limiter: Then follows if When is true.
type Case[F, T any] struct {
	Limiter verdict.Name
	Name    string
	When    Condition[F]
	Then    T
}

// First returns the outcome of the first case of the limiter that applies, false if none does.
func First[F, T any](cases []Case[F, T], limiter verdict.Name, facts F) (then T, found bool) {
	for i := range cases {
		if c := &cases[i]; c.Limiter == limiter && c.When.IsTrue(facts) {
			return c.Then, true
		}
	}
	return then, false
}

// ListCases describes the rules on verdicts; describe returns an outcome as it is printed.
func ListCases[F, T any](title string, cases []Case[F, T], describe func(T) string) List {
	l := List{Title: title}
	for i := range cases {
		c := &cases[i]
		Add(&l, c.Name, c.When, string(c.Limiter)+": "+describe(c.Then))
	}
	return l
}
