package search

import (
	"math"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/stats"
)

func (s *Search) best() *arm {
	best := s.automatic
	for _, a := range s.windows {
		if a.mid() > best.mid() {
			best = a
		}
	}
	return best
}

func (s *Search) automaticSeemsEnough() bool {
	return s.automatic.mid() >= s.best().mid()+math.Log(Enough)
}

// noise is the scatter of one trial, pooled over all that were repeated.
func (s *Search) noise() stats.Noise {
	groups := [][]float64{s.automatic.logs}
	for _, a := range s.windows {
		groups = append(groups, a.logs)
	}
	return stats.Pool(s.expected(), groups...)
}

// between is the scatter that counts for comparing two candidates.
func (s *Search) between(a, b *arm) stats.Noise {
	noise := s.noise()
	own := stats.Pool(s.expected(), a.logs, b.logs)
	switch calm := own.Dev < noise.Dev/2 && len(a.logs) >= ownRuns && len(b.logs) >= ownRuns; {
	case own.Dev > noise.Dev, calm:
		return own // a full path scatters more than one that a small window limits, and less than one that loses
	}
	return noise
}

// ownRuns are what each of two candidates takes to be judged by its own scatter where that is far less
// than the others'.
const ownRuns = 4

func (s *Search) expected() stats.Noise { return stats.Noise{Dev: s.cfg.Noise, DOF: 3} }

// decision is the answer to one comparison.
type decision int

const (
	open decision = iota
	enough
	notEnough
)

// level is the confidence of one decision. Each is looked at again after every trial,
// so it is higher than the 95 % that the answer claims.
const level = 0.99

// compare decides whether a reaches Enough of b.
func (s *Search) compare(a, b *arm) decision { return s.reaches(a, b, Enough) }

func (s *Search) reaches(a, b *arm, share float64) decision {
	noise := s.between(a, b)
	t, ok := s.student[int(noise.DOF)]
	if !ok {
		t = stats.Student(level, math.Floor(noise.DOF))
		s.student[int(noise.DOF)] = t
	}
	over := a.mid() - b.mid() - math.Log(share)
	margin := t * math.Hypot(noise.Error(len(a.logs)), noise.Error(len(b.logs)))
	switch {
	case over >= margin:
		return enough
	case over < -margin:
		return notEnough
	}
	return open
}

// bestOther returns the best of all windows but a, to which a is compared.
func (s *Search) bestOther(a *arm) *arm {
	var other *arm
	for _, b := range append([]*arm{s.automatic}, s.windows...) {
		if b != a && (other == nil || b.mid() > other.mid()) {
			other = b
		}
	}
	return other
}

// below is the next smaller window that was tried, or nil.
func (s *Search) below(a *arm) *arm {
	if i := slices.Index(s.windows, a); i > 0 {
		return s.windows[i-1]
	}
	return nil
}

// Tolerance is how far above the smallest window that is enough an answer may lie.
const Tolerance = 1.15

// smallest says whether anything smaller than a by more than Tolerance is ruled out: by
// the round trip, or by a window that was shown not to be enough.
func (s *Search) smallest(a *arm) bool {
	best := s.best()
	limit := float64(a.window) / Tolerance
	if limit <= Enough*math.Exp(best.mid())/8*s.cfg.RTT.Seconds() || limit < 2*float64(s.cfg.MSS) {
		return true
	}
	return slices.ContainsFunc(s.windows, func(b *arm) bool {
		return b.window < a.window && float64(b.window) >= limit && s.compare(b, best) == notEnough
	})
}

// least is how often what decides is tried at least: three times, where the budget
// allows more than a dozen trials.
func (s *Search) least() int {
	if s.cfg.Time < 12*s.cfg.Length(0) {
		return 2
	}
	return 3
}
