// Package guard compares the figures of a report with each other before it is printed. A figure that contradicts
// another one is removed with its sentence, and the verdict's confidence is one step lower. No figure is altered.
//
// The relations that figures must keep are tables: see directionRelations, evidenceRelations, loopRelations,
// gridRelations, wayRelations and predictionRelations.
package guard

import (
	"maps"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// relation is one that the figures of a scope must keep: left is at most factor × right. A figure that is absent is
// not known, and it then breaks no relation. Nor does a right of 0, unless it is named zero.
type relation struct {
	codes  []verdict.Code // of the evidence that it applies to; nil: all
	left   string
	factor float64
	right  string
	drops  []string // names of the figures that are removed; nil: the whole piece of evidence
}

// zero is the name of a figure that is known to be 0, for the relation "left is not positive".
const zero = "0"

// agrees reports whether the figures of a scope keep the relation.
func (r *relation) agrees(s scope) bool {
	left, known := s[r.left]
	if r.right == zero { // a printed figure must be positive
		return !known || left > 0
	}
	right := s[r.right]
	return !known || right == 0 || left <= r.factor*right
}

// scope maps names to figures.
type scope map[string]float64

func (s scope) add(name string, value *float64) {
	if value != nil {
		s[name] = *value
	}
}

// addTime adds a time that is known where it is not 0.
func (s scope) addTime(name string, t units.Duration) {
	if t != 0 {
		s[name] = t.Seconds()
	}
}

// drop maps names to functions that remove these figures from a document.
type drop map[string]func()

// check removes from a document each figure that breaks a relation, and returns how many it removed.
func check(relations []relation, s scope, remove drop) (removed int) {
	for i := range relations {
		r := &relations[i]
		if r.agrees(s) {
			continue
		}
		for _, name := range r.drops {
			if drop := remove[name]; drop != nil {
				drop()
				removed++
				delete(remove, name)
				delete(s, name)
			}
		}
	}
	return removed
}

// evidence removes the pieces of evidence of a verdict that break a relation, and returns how many relations were
// broken. The figures of the direction are known to each piece. It also reports whether the first piece was removed,
// which is the cause in a verdict's sentence.
func evidence(v *verdict.Verdict, direction scope) (broken int, causeRemoved bool) {
	kept := make([]verdict.Evidence, 0, len(v.Evidence))
	for i, e := range v.Evidence {
		failed, whole := checkEvidence(&e, direction)
		broken += failed
		if !whole {
			kept = append(kept, e)
		} else if i == 0 {
			causeRemoved = true
		}
	}
	if broken > 0 {
		v.Evidence = kept
	}
	return broken, causeRemoved
}

// checkEvidence removes figures from a piece of evidence. It reports whether the whole piece must go.
func checkEvidence(e *verdict.Evidence, direction scope) (broken int, whole bool) {
	s := scope{"1": 1}
	maps.Copy(s, direction)
	maps.Copy(s, scope(e.Values))
	products(s, e.Values)
	for i := range evidenceRelations {
		r := &evidenceRelations[i]
		if r.codes != nil && !slices.Contains(r.codes, e.Code) || r.agrees(s) {
			continue
		}
		broken++
		if r.drops == nil {
			return broken, true
		}
		e.Values = maps.Clone(e.Values)
		for _, name := range r.drops {
			delete(e.Values, name)
			delete(s, name)
		}
	}
	return broken, false
}

// conclude lowers the confidence of a verdict that lost figures, and adds that to its evidence.
func conclude(v *verdict.Verdict, broken int, causeRemoved bool) {
	if broken == 0 {
		return
	}
	v.Confidence = verdict.Lower(v.Confidence)
	at := len(v.Evidence)
	if causeRemoved { // the evidence of another limiter does not explain the verdict
		at = 0
	}
	v.Evidence = slices.Insert(v.Evidence, at, verdict.Evidence{Limiter: verdict.Unknown, Code: verdict.FiguresRemoved,
		Values: verdict.Values{"figures": float64(broken)}})
}
