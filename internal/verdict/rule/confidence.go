package rule

import "github.com/fullpipe-net/fullpipe/internal/verdict"

// Step is a rule that lowers the confidence in any limiter.
type Step[F any] struct {
	Name   string
	When   Condition[F]
	AtMost verdict.Confidence // "": one step lower
}

// Confidence returns the confidence of the first case of the limiter that applies, medium without
// one, and lowers it by all steps that apply.
func Confidence[F any](levels []Case[F, verdict.Confidence], steps []Step[F], limiter verdict.Name,
	facts F) verdict.Confidence {
	confidence, found := First(levels, limiter, facts)
	if !found {
		confidence = verdict.Medium
	}
	return Lowered(confidence, steps, facts)
}

// Lowered returns a confidence lowered by all steps that apply.
func Lowered[F any](c verdict.Confidence, steps []Step[F], facts F) verdict.Confidence {
	for i := range steps {
		if s := &steps[i]; s.When.IsTrue(facts) {
			c = s.lower(c)
		}
	}
	return c
}

func (s *Step[F]) lower(c verdict.Confidence) verdict.Confidence {
	switch {
	case s.AtMost == "":
		return verdict.Lower(c)
	case s.AtMost == verdict.Medium && c == verdict.High:
		return verdict.Medium
	case s.AtMost == verdict.Low:
		return verdict.Low
	}
	return c
}

// ListSteps describes the rules that lower it.
func ListSteps[F any](title string, steps []Step[F]) List {
	l := List{Title: title}
	for i := range steps {
		s := &steps[i]
		outcome := "one step lower"
		if s.AtMost != "" {
			outcome = "at most " + string(s.AtMost)
		}
		Add(&l, s.Name, s.When, outcome)
	}
	return l
}
