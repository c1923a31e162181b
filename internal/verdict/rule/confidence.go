package rule

import "github.com/fullpipe-net/fullpipe/internal/verdict"

// Level is a rule on the confidence in a limiter's evidence.
type Level[F any] struct {
	Limiter    verdict.Name
	Name       string
	When       Condition[F]
	Confidence verdict.Confidence
}

// Step is a rule that lowers the confidence in any limiter.
type Step[F any] struct {
	Name   string
	When   Condition[F]
	AtMost verdict.Confidence // "": one step lower
}

// Confidence returns the confidence of the first rule of the limiter that applies, medium without one, and lowers it by
// all steps that apply.
func Confidence[F any](levels []Level[F], steps []Step[F], limiter verdict.Name, facts F) verdict.Confidence {
	confidence := verdict.Medium
	for i := range levels {
		if l := &levels[i]; l.Limiter == limiter && l.When.IsTrue(facts) {
			confidence = l.Confidence
			break
		}
	}
	for i := range steps {
		if s := &steps[i]; s.When.IsTrue(facts) {
			confidence = s.lower(confidence)
		}
	}
	return confidence
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

// ListLevels describes the rules on the confidence in a limiter's evidence.
func ListLevels[F any](title string, levels []Level[F]) List {
	l := List{Title: title}
	for i := range levels {
		r := &levels[i]
		Add(&l, r.Name, r.When, string(r.Limiter)+": "+string(r.Confidence))
	}
	return l
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
