package search

import "math"

// Verdict is what a search comes to.
type Verdict string

const (
	Change       Verdict = "change"
	NoChange     Verdict = "nothing-to-change"
	Inconclusive Verdict = "inconclusive" // so nothing is changed
)

// Answer is what follows from the trials.
type Answer struct {
	Verdict Verdict
	// Window is the effective window to give; 0: leave it automatic, as it is.
	Window int
	Asked  int // the request that gave Window
	// Shown says that Window was shown to reach 98 % of the best and anything smaller by
	// more than 15 % not to. Otherwise it is only shown to be better than automatic.
	Shown bool
	// Share is the estimated goodput of Window, or of automatic, over the best.
	Share float64
	// Clipped says that windows larger than the best were asked for and not given.
	Clipped bool
	Spent   Budget
}

// Answer is the smallest window that is shown to be enough. Where that stays open, it is
// one that seems to be and is shown to be better than automatic: by 5 % if it is less
// than what automatic reached.
func (s *Search) Answer() Answer {
	best := s.best()
	answer := Answer{Verdict: Inconclusive, Share: math.Exp(s.automatic.mid() - best.mid()),
		Clipped: s.ceiling < s.cfg.Largest && float64(best.window) > 0.9*float64(s.ceiling), Spent: Budget{s.time, s.bytes}}
	if len(s.automatic.logs) == 0 || len(s.windows) == 0 {
		return answer
	}
	_, room := s.room()
	if s.compare(s.automatic, s.rival(s.automatic)) == enough {
		if !room {
			answer.Verdict = NoChange
		}
		return answer
	}
	if s.automaticSeemsEnough() {
		return answer
	}
	for _, a := range s.windows {
		shown := s.compare(a, s.rival(a)) == enough
		gain := 1.0
		if !shown && a.window < s.automatic.window {
			gain = 1.05 // less than now is never recommended on a guess
		}
		likely := shown || a.mid() >= best.mid()+math.Log(Enough)
		if likely && s.reaches(a, s.automatic, gain) == enough {
			answer.Verdict, answer.Window, answer.Asked = Change, a.window, a.asked
			answer.Shown = shown && !room && s.smallest(a)
			answer.Share = math.Exp(a.mid() - best.mid())
			return answer
		}
	}
	return answer
}
