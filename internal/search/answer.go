package search

import (
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// Verdict is what a search comes to.
type Verdict string

const (
	Change       Verdict = "change"
	NoChange     Verdict = "nothing-to-change"
	Inconclusive Verdict = "inconclusive" // so nothing is changed
)

// Strength is how sure a decision is.
type Strength string

const (
	Shown  Strength = "shown"  // wrong in ComparisonError of the cases at most
	Likely Strength = "likely" // at least 95 % probable
	Open   Strength = "open"   // not decided
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
	// Needs is what deciding would take from here on, if the goodputs are what they seem to
	// be: 0 where it is decided, at most longestNeed.
	Needs time.Duration
	// Noise is how much single trials scatter, as a share of their goodput.
	Noise stats.Noise
}

// Answer is the smallest window that is shown to be enough. Where that stays open, it is
// one that seems to be and is shown to be better than automatic: by 5 % if it is less
// than automatic sizing reached.
func (s *Search) Answer() Answer {
	answer := s.answer()
	answer.Noise = s.noise()
	if answer.Verdict == Inconclusive {
		answer.Needs = s.needs()
	}
	return answer
}

func (s *Search) answer() Answer {
	best := s.best()
	answer := Answer{Verdict: Inconclusive, Share: math.Exp(s.automatic.mid() - best.mid()),
		Clipped: s.ceiling < s.cfg.Largest && float64(best.window) > 0.9*float64(s.ceiling), Spent: Budget{s.time, s.bytes}}
	if len(s.automatic.logs) == 0 || len(s.windows) == 0 {
		return answer
	}
	_, room := s.room()
	if s.compare(s.automatic, s.bestOther(s.automatic)) == enough {
		if !room && len(s.automatic.logs) > 1 { // one run may be luck
			answer.Verdict = NoChange
		}
		return answer
	}
	if s.automaticSeemsEnough() {
		return answer
	}
	for _, a := range s.windows {
		shown := s.compare(a, s.bestOther(a)) == enough
		gain := 1.0
		if !shown && a.window < s.automatic.window {
			gain = 1.05 // less than now is never recommended on a guess
		}
		likely := shown || a.mid() >= best.mid()+math.Log(Enough)
		if likely && s.reaches(a, s.automatic, gain) == enough {
			answer.Verdict = Change
			answer.Window = a.window
			answer.Asked = a.asked
			answer.Shown = shown && !room && s.smallest(a)
			answer.Share = math.Exp(a.mid() - best.mid())
			return answer
		}
	}
	return answer
}

// Nearly is the share of the best goodput from which on what is left to gain is too little to
// matter.
const Nearly = 0.95

// Limits is the share of the best goodput below which what keeps automatic sizing from the rest is
// said to limit it (docs/limiters.md): a tenth more is to be had.
const Limits = 1 / 1.10

// Automatic is the share of the best goodput that automatic sizing seems to reach.
func (s *Search) Automatic() float64 { return math.Exp(s.automatic.mid() - s.best().mid()) }

// Alike says that automatic sizing seems to reach Nearly of the best and was shown to reach Limits of
// it: then windows do not limit, and the possible gain of another one is too small to search longer.
func (s *Search) Alike() bool {
	return s.Automatic() >= Nearly && s.Reaches(Limits)
}

// Reaches says that automatic sizing was shown to reach a share of the best that any window gave.
func (s *Search) Reaches(share float64) bool {
	if len(s.automatic.logs) < 2 || len(s.windows) == 0 {
		return false
	}
	_, room := s.room()
	return !room && s.reaches(s.automatic, s.bestOther(s.automatic), share) == enough
}

// longestNeed bounds Needs: smaller differences are not worth the time.
const longestNeed = time.Hour

// needs is the time of the trials that decide an open search: until what automatic sizing
// reaches of the best exceeds their scatter. The best of several is overestimated, and
// other windows are tried besides: half as much again.
func (s *Search) needs() time.Duration {
	a := s.automatic
	b := s.best()
	if b == a {
		b = s.bestOther(a)
	}
	if b == nil || len(a.logs) == 0 || len(b.logs) == 0 {
		return 0
	}
	noise := s.between(a, b)
	over := math.Max(math.Abs(a.mid()-b.mid()-math.Log(Enough)), 1e-6)
	t := stats.Student(level, math.Max(noise.DOF, manyTrials))
	each := math.Ceil(2 * math.Pow(t*noise.Dev*trimmed/over, 2))
	trials := math.Max(1, each-float64(len(a.logs))) + math.Max(1, each-float64(len(b.logs)))
	return time.Duration(math.Min(1.5*trials*float64(s.cfg.Length(0)), float64(longestNeed)))
}

// manyTrials are the degrees of freedom that the scatter will have by then, trimmed the
// standard error of the Middle over the mean's.
const manyTrials, trimmed = 12, 1.15
