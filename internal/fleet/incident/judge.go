package incident

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"
)

// judging is a state while it is judged.
type judging struct {
	State
	members map[Cause][]int // directions by cause
	index   map[Path]int    // directions by name
	away    map[string]bool
	open    []*Incident
	pairs   map[string]bool // due at once
	waiting map[string]bool // asked for before
	claimed map[int]bool    // directions that a graver finding explains
	wake    time.Time
}

// Judge decides what follows from a state. newID returns the ID of a new incident.
func Judge(s State, newID func() string) Decision {
	j := &judging{State: s, members: map[Cause][]int{}, index: map[Path]int{}, pairs: map[string]bool{},
		waiting: map[string]bool{}, claimed: map[int]bool{}}
	known := make([]*Incident, len(s.Incidents))
	for i := range s.Incidents {
		copied := s.Incidents[i]
		known[i] = &copied
		if copied.Open() {
			j.open = append(j.open, known[i])
		}
	}
	j.setAway()
	found := j.findAway()
	if len(j.open) > 0 || slices.ContainsFunc(j.Directions, isConspicuous) {
		j.sort()
		for _, symptom := range []Symptom{Unreachable, Slow, Delayed} {
			found = append(found, j.find(symptom)...)
		}
		found = append(found, j.findLimited()...)
	}
	m := &matching{judging: j, known: known, newID: newID, found: map[*Incident][]finding{}}
	m.match(found)
	m.settle()
	return m.decision()
}

// isConspicuous reports whether a direction may be part of a finding. Most are not.
func isConspicuous(d Direction) bool {
	for _, s := range []Symptom{Unreachable, Slow, Delayed} {
		if sign := d.sign(s); sign.Off && !sign.Since.IsZero() {
			return true
		}
	}
	return kindsOf(d.Limiter) != nil
}

// sort finds the directions of each cause.
func (j *judging) sort() {
	all := Cause{Kind: AllHosts}
	for i := range j.Directions {
		d := &j.Directions[i]
		j.index[d.path()] = i
		j.members[all] = append(j.members[all], i)
		for _, c := range d.causes() {
			j.members[c] = append(j.members[c], i)
		}
	}
}

// isNew reports whether no open incident explains what is wrong with a direction.
func (j *judging) isNew(i int) bool {
	d := &j.Directions[i]
	causes := d.causes()
	for _, known := range j.open {
		blames := func(c Cause) bool { return c.key() == known.Cause.key() && c.Kind.Noun() != "fleet" }
		if known.has(d) || slices.ContainsFunc(causes, blames) && slices.ContainsFunc(known.Symptoms, isLevel) {
			return false
		}
	}
	return true
}

// isLevel reports whether a symptom is one of single directions.
func isLevel(s Symptom) bool { return s == Unreachable || s == Slow || s == Delayed }

// find returns the findings of a symptom.
func (j *judging) find(s Symptom) (found []finding) {
	g := &grouping{directions: j.Directions, members: j.members, off: map[int]bool{}, anchors: map[int]bool{},
		allowed: func(k Kind) bool { return k != AllHosts }}
	fresh := map[int]bool{} // anchors that no open incident has
	for i := range j.Directions {
		d := &j.Directions[i]
		sign := d.sign(s)
		if !sign.Off || j.away[d.From] || j.away[d.To] {
			continue
		}
		g.off[i] = true
		if !sign.Since.IsZero() && !j.claimed[i] {
			g.anchors[i] = true
			fresh[i] = j.isNew(i)
		}
	}
	if len(g.anchors) == 0 {
		return nil
	}
	since := map[Cause]time.Time{} // from which on a result counts as usual
	g.known = func(c Cause, i int) bool {
		at, ok := since[c]
		if !ok {
			at = j.sinceOf(c, s, g.anchors, fresh)
			since[c] = at
		}
		d := &j.Directions[i]
		return j.compares(i, s) && !d.Measured.Before(at) && !j.away[d.From] && !j.away[d.To]
	}
	found, rest := g.groups()
	found = append(found, j.single(rest, g.off)...)
	for i := range found {
		f := &found[i]
		f.symptom = s
		f.confirmed = true
		for _, k := range f.members {
			j.claimed[k] = true
			if !g.anchors[k] {
				continue
			}
			if at := j.Directions[k].sign(s).Since; f.since.IsZero() || at.Before(f.since) {
				f.since = at
			}
			if fresh[k] {
				waits, confirmed := j.askAround(k, s)
				f.waits = f.waits || waits
				f.confirmed = f.confirmed && confirmed
			}
		}
	}
	return found
}

// sinceOf returns when the oldest anchor of a cause began that no open incident has, otherwise the oldest anchor.
func (j *judging) sinceOf(c Cause, s Symptom, anchors, fresh map[int]bool) (at time.Time) {
	isFresh := false
	for _, i := range j.members[c] {
		if !anchors[i] || isFresh && !fresh[i] {
			continue
		}
		since := j.Directions[i].sign(s).Since
		if at.IsZero() || fresh[i] && !isFresh || since.Before(at) {
			at = since
		}
		isFresh = isFresh || fresh[i]
	}
	return at
}

// single returns a finding for each pair of hosts without a common cause with others. A direction of an open incident
// stays in it.
func (j *judging) single(rest []int, off map[int]bool) (found []finding) {
	byPath := map[string]int{} // index into found
	for _, i := range rest {
		d := &j.Directions[i]
		if slices.ContainsFunc(j.open, func(known *Incident) bool { return known.has(d) && known.Cause.Kind != OnePath }) {
			continue
		}
		id := min(d.From, d.To) + " " + max(d.From, d.To)
		at, ok := byPath[id]
		if !ok {
			at = len(found)
			byPath[id] = at
			found = append(found, finding{cause: Cause{OnePath, id}})
		}
		found[at].members = append(found[at].members, i)
	}
	for k := range found {
		f := &found[k]
		first := &j.Directions[f.members[0]]
		back := Path{Task: first.Task, From: first.To, To: first.From}
		if i, ok := j.index[back]; ok && off[i] && !slices.Contains(f.members, i) {
			f.members = append(f.members, i)
		}
		f.of = len(f.members)
	}
	return found
}

// findLimited returns the hosts, sites and links whose paths have one limiter that is a setting or a fault of hosts. It
// needs no earlier results.
func (j *judging) findLimited() (found []finding) {
	byLimiter := map[string]map[int]bool{}
	for i := range j.Directions {
		d := &j.Directions[i]
		if kindsOf(d.Limiter) == nil || j.away[d.From] || j.away[d.To] {
			continue
		}
		if byLimiter[d.Limiter] == nil {
			byLimiter[d.Limiter] = map[int]bool{}
		}
		byLimiter[d.Limiter][i] = true
	}
	for _, limiter := range slices.Sorted(maps.Keys(byLimiter)) {
		g := &grouping{directions: j.Directions, members: j.members, off: byLimiter[limiter], anchors: byLimiter[limiter],
			allowed: func(k Kind) bool { return slices.Contains(kindsOf(limiter), k) },
			known:   func(Cause, int) bool { return true }} // a path without a result is none of the limiter's
		groups, _ := g.groups()
		for _, f := range groups {
			f.symptom = Limited
			f.limiter = limiter
			f.confirmed = true
			for _, i := range f.members {
				if at := j.Directions[i].Measured; f.since.IsZero() || at.Before(f.since) {
					f.since = at
				}
			}
			found = append(found, f)
		}
	}
	return found
}

// pathOf returns a direction with its figures.
func (j *judging) pathOf(i int) Path {
	d := &j.Directions[i]
	p := d.path()
	p.GoodputBps = d.GoodputBps
	p.UsualBps = d.Goodput.Usual.Level
	p.RTTMinS = d.RTTMinS
	p.UsualRTTS = d.RTT.Usual.Level
	p.Limiter = d.Limiter
	return p
}

// window returns the most frequent window of a finding's directions, 0 if most differ.
func (j *judging) window(f finding) int64 {
	counts := map[int64]int{}
	for _, i := range f.members {
		counts[j.Directions[i].WindowBytes]++
	}
	for size, n := range counts {
		if size > 0 && 2*n > len(f.members) {
			return size
		}
	}
	return 0
}

// same reports whether an incident is stored as it is.
func same(a, b *Incident) bool { return reflect.DeepEqual(*a, *b) }

// Gravest returns the place of the gravest of symptoms in Symptoms.
func Gravest(symptoms []Symptom) int {
	at := len(Symptoms)
	for _, s := range symptoms {
		at = min(at, slices.Index(Symptoms, s))
	}
	return at
}

func byGravity(a, b Symptom) int {
	return cmp.Compare(slices.Index(Symptoms, a), slices.Index(Symptoms, b))
}
