package search

import "math"

// The exploring trials stop after this many, and with those that refine when this share
// of the time is spent: the rest is for repeating what decides.
const (
	mostProbes   = 10
	exploreShare = 0.6
)

// doubt repeats what one stalled transfer would explain: the model's window if it
// carried less than its share, a window that carried less than both its neighbours, and
// two results that do not agree.
func (s *Search) doubt() (Trial, bool) {
	if s.disagree(s.automatic) {
		return s.again(s.automatic, SuspectedStall)
	}
	for i, a := range s.windows {
		dip := i > 0 && i+1 < len(s.windows) && a.mid() < math.Min(s.windows[i-1].mid(), s.windows[i+1].mid())-0.06
		share := math.Min(1, float64(a.window)/s.cfg.Knee)
		low := s.same(a.asked, s.whole(modelShare*s.cfg.Knee)) && a.mid() < math.Log(share*s.cfg.CapacityBps)-0.06
		if len(a.logs) == 1 && (low || dip) || s.disagree(a) {
			return s.again(a, SuspectedStall)
		}
	}
	return Trial{}, false
}

// disagree says that the only two results of a candidate lie far apart.
func (s *Search) disagree(a *arm) bool {
	return len(a.logs) == 2 && math.Abs(a.logs[0]-a.logs[1]) > math.Max(0.06, 2*s.cfg.Noise)
}

// explore looks for a better window where the bounds leave room for one.
func (s *Search) explore() (Trial, bool) {
	if s.probes >= mostProbes || s.explored() {
		return Trial{}, false
	}
	if window, ok := s.room(); ok {
		return s.probe(window, MoreRoom)
	}
	return Trial{}, false
}

// room is a window that was not tried and that could be better than the best. A gap
// between two windows is open if its right end loses segments, and if a window in it,
// though it carried no more for its size than the left end, would be better. A
// window whose rate per round trip is below the best cannot be.
func (s *Search) room() (window int, ok bool) {
	best := s.best()
	scatter := s.noise().Dev
	capacity := math.Max(math.Log(s.cfg.CapacityBps), best.mid())
	full := math.Log(float64(best.window) * s.cfg.CapacityBps / s.cfg.Knee)
	windowLimits := !best.lossy && best.mid() > full-0.015 // only its window limits it: a larger one may carry more
	if windowLimits {
		capacity = math.Max(capacity, best.mid()+0.25)
	}
	worth := best.mid() + math.Max(0.008, scatter)
	perWindow := math.Log(8 / s.cfg.RTT.Seconds())

	left := math.Max(best.mid()-perWindow, math.Log(2*float64(s.cfg.MSS)))
	goodput := left + perWindow
	limiting := true
	for i, a := range s.windows {
		right := math.Log(float64(a.window))
		narrow := math.Max(0.03, scatter)
		if !limiting {
			narrow = math.Ln2
		}
		if a.lossy && math.Min(capacity, goodput+right-left) > worth && right-left > narrow {
			knee := left + capacity - goodput                           // where a window in proportion would fill the path
			seen := !windowLimits && (i > 0 || a.mid() > capacity-0.15) // else the knee does not show where the best window is
			if limiting && seen && knee > left+0.02 && knee < right-0.02 {
				if w := s.whole(math.Exp(knee)); !s.tried(w) {
					return w, true
				}
			}
			if w := s.whole(math.Exp((left + right) / 2)); !s.tried(w) {
				return w, true
			}
		}
		if right > left {
			left = right
			goodput = a.mid()
			limiting = goodput > left+math.Log(s.cfg.CapacityBps/s.cfg.Knee)-0.12
		}
	}
	window = s.whole(2 * math.Exp(left))
	return window, best == s.windows[len(s.windows)-1] && goodput < capacity-0.05 && !s.tried(window)
}

// refine narrows down where enough begins: between the smallest window that seems
// enough and the largest below it that is not.
func (s *Search) refine() (Trial, bool) {
	best := s.best()
	if s.automaticSeemsEnough() || s.explored() {
		return Trial{}, false
	}
	lo, loGoodput, hi := s.bracket(best)
	if hi == nil || math.Log(float64(hi.window))-lo < math.Log(1.12) {
		return Trial{}, false
	}
	// Up to the knee goodput is in proportion to the window.
	at := lo + best.mid() + math.Log(1.01*Enough) - loGoodput
	right := math.Log(float64(hi.window))
	at = math.Min(math.Max(at, lo+math.Min(0.05, (right-lo)/2)), math.Max((lo+right)/2, right-0.10))
	for _, bytes := range []float64{math.Exp(at), math.Exp((lo + right) / 2), math.Exp(lo) + float64(s.cfg.MSS)} {
		if w := s.whole(bytes); !s.tried(w) && w < hi.window {
			return s.probe(w, LessEnough)
		}
	}
	return Trial{}, false
}

// explored says that what is left of the time is for repeats.
func (s *Search) explored() bool { return float64(s.time) > exploreShare*float64(s.cfg.Time) }

func (s *Search) probe(window int, why Purpose) (Trial, bool) {
	s.probes++
	return Trial{Window: window, Purpose: why}, true
}

// bracket is where enough begins: the logarithms of the largest window that seems not
// enough (or, by the round trip, cannot be) and of its goodput, and the smallest window
// that seems enough.
func (s *Search) bracket(best *arm) (lo, loGoodput float64, hi *arm) {
	perWindow := math.Log(8 / s.cfg.RTT.Seconds())
	loGoodput = best.mid() + math.Log(Enough)
	lo = loGoodput - perWindow
	for _, a := range s.windows {
		if a.mid() >= best.mid()+math.Log(Enough) {
			return lo, loGoodput, a
		}
		if w := math.Log(float64(a.window)); w > lo {
			lo = w
			loGoodput = a.mid()
		}
	}
	return lo, loGoodput, nil
}

// confirm repeats what is not decided yet, unless that is of no weight and takes more than there is.
func (s *Search) confirm() (Trial, bool) {
	best := s.best()
	if len(s.automatic.logs) < 2 {
		return s.again(s.automatic, OnceMore)
	}
	if s.Alike() && s.needs() > s.cfg.Time-s.time || s.hopeless() {
		return Trial{}, false
	}
	// Once a window was shown to be better, by how much automatic misses its share decides nothing.
	other := s.bestOther(s.automatic)
	if s.compare(s.automatic, other) == open && s.reaches(other, s.automatic, 1) != enough {
		return s.repeat(s.automatic, other, AutomaticAsGood)
	}
	if s.automaticSeemsEnough() {
		return Trial{}, false
	}
	_, _, hi := s.bracket(best)
	if hi == nil {
		return Trial{}, false
	}
	for _, a := range []*arm{s.automatic, hi} {
		if len(a.logs) < s.least() {
			return s.again(a, OnceMore)
		}
	}
	if other := s.bestOther(hi); s.compare(hi, other) == open {
		return s.repeat(hi, other, WindowEnough)
	}
	if below := s.below(hi); below != nil && !s.smallest(hi) && s.compare(below, best) == open {
		return s.repeat(below, best, LessEnough)
	}
	return Trial{}, false
}

// hopeless reports that losses scatter so much that it would take many times the remaining budget to distinguish
// windows, and that none seems to be better by a tenth. Other remedies come first then, and only More resumes the
// search.
func (s *Search) hopeless() bool {
	const many = 4
	return !s.resumed && s.automatic.lossy && len(s.automatic.logs) >= ownRuns &&
		s.automatic.mid() >= s.best().mid()+math.Log(Limits) && s.needs() > many*(s.cfg.Time-s.time)
}

// repeat tries the one of two candidates that was tried less often, or either.
func (s *Search) repeat(a, b *arm, why Purpose) (Trial, bool) {
	if len(a.logs) > len(b.logs) || len(a.logs) == len(b.logs) && s.rng.IntN(2) == 0 {
		a = b
	}
	return s.again(a, why)
}

func (s *Search) again(a *arm, why Purpose) (Trial, bool) {
	if a == s.automatic {
		return Trial{Automatic: true, Purpose: why}, true
	}
	return Trial{Window: a.asked, Purpose: why}, true
}
