package incident

import (
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func kindsOf(limiter string) []Kind { return limiters[verdict.Name(limiter)] }

// matching makes incidents of findings.
type matching struct {
	*judging
	known   []*Incident
	newID   func() string
	found   map[*Incident][]finding
	fresh   []*Incident
	notices []Notice
	changed map[*Incident]bool // another cause or a graver symptom
}

// match gives each finding its incident: the one of the same host, site, link or path; an open one that it explains;
// one that was resolved lately; or a new one, once its cause is known.
func (m *matching) match(found []finding) {
	m.changed = map[*Incident]bool{}
	var unmatched []finding
	for _, f := range found {
		if known := m.byKey(f); known != nil {
			m.found[known] = append(m.found[known], f)
		} else {
			unmatched = append(unmatched, f)
		}
	}
	for _, f := range unmatched {
		if f.waits {
			continue
		}
		if known := m.byKey(f); known != nil { // a graver finding of the same host has just made it
			m.found[known] = append(m.found[known], f)
			continue
		}
		if known := m.within(f); known != nil {
			known.Cause = f.cause
			known.Confirmed = f.confirmed
			m.changed[known] = true
			m.found[known] = append(m.found[known], f)
			continue
		}
		known := m.back(f)
		if known == nil {
			known = &Incident{ID: m.newID(), Cause: f.cause, SinceAt: f.since}
			m.fresh = append(m.fresh, known)
		}
		known.OpenedAt = m.Now
		known.ResolvedAt = time.Time{}
		known.BackAt = time.Time{}
		known.Confirmed = f.confirmed
		m.open = append(m.open, known)
		m.found[known] = append(m.found[known], f)
	}
}

// byKey returns the open incident that blames the same host, site, link or path.
func (m *matching) byKey(f finding) *Incident {
	for _, known := range m.open {
		if known.Cause.key() == f.cause.key() {
			return known
		}
	}
	return nil
}

// back returns the incident that was resolved lately and is back.
func (m *matching) back(f finding) *Incident {
	for _, known := range m.known {
		if !known.Open() && known.Cause.key() == f.cause.key() && m.Now.Before(known.ResolvedAt.Add(Reopens)) {
			return known
		}
	}
	return nil
}

// within returns the largest open incident without a finding of its own that a finding explains. Others that it
// explains are resolved: they are part of it.
func (m *matching) within(f finding) (largest *Incident) {
	if f.cause.Kind == OnePath {
		return nil
	}
	var parts []*Incident
	for _, known := range m.open {
		explained := 0
		for _, i := range f.members {
			if known.has(&m.Directions[i]) {
				explained++
			}
		}
		if explained == 0 || 2*explained < len(known.Paths) || slices.ContainsFunc(m.found[known], isCommon) {
			continue
		}
		parts = append(parts, known)
		if largest == nil || len(known.Paths) > len(largest.Paths) {
			largest = known
		}
	}
	for _, known := range parts {
		delete(m.found, known)
		if known != largest {
			m.resolve(known)
		}
	}
	return largest
}

func isCommon(f finding) bool { return f.cause.Kind != OnePath }

func (m *matching) resolve(known *Incident) {
	known.ResolvedAt = m.Now
	m.open = slices.DeleteFunc(m.open, func(o *Incident) bool { return o == known })
}

// settle updates the open incidents, and resolves those that are over.
func (m *matching) settle() {
	for _, known := range slices.Clone(m.open) {
		found := m.found[known]
		symptoms := slices.Clone(known.Symptoms)
		if len(found) > 0 {
			m.update(known, found)
		}
		left, total, waits := m.left(known)
		if len(found) == 0 && !waits && (left == 0 || 2*left < total) {
			m.resolve(known)
			if left > 0 {
				m.wakeAt(m.Now.Add(time.Second)) // these have another cause
			}
			continue
		}
		if known.Reported && Gravest(known.Symptoms) < Gravest(symptoms) {
			m.changed[known] = true
		}
	}
}

// update takes over what findings of an incident say.
func (m *matching) update(known *Incident, found []finding) {
	if !slices.ContainsFunc(found, func(f finding) bool { return f.symptom == Away }) {
		known.Symptoms = nil // otherwise what its paths have is not known
	}
	known.Hosts = nil
	paths := map[Path]bool{}
	for _, p := range known.Paths {
		paths[Path{Task: p.Task, From: p.From, To: p.To}] = true
	}
	for n, f := range found {
		if !slices.Contains(known.Symptoms, f.symptom) {
			known.Symptoms = append(known.Symptoms, f.symptom)
		}
		known.Hosts = append(known.Hosts, f.hosts...)
		if f.symptom == Limited {
			known.Limiter = f.limiter
			known.Window = m.window(f)
		}
		if n == 0 { // the gravest
			known.Cause.Kind = f.cause.Kind
			known.Affected = max(len(f.members), len(f.hosts))
			known.Of = f.of
		}
		for _, i := range f.members {
			paths[m.Directions[i].path()] = true
		}
	}
	slices.SortFunc(known.Symptoms, byGravity)
	known.Paths = known.Paths[:0:0]
	for i := range m.Directions {
		if paths[m.Directions[i].path()] {
			known.Paths = append(known.Paths, m.pathOf(i))
		}
	}
	if known.Limiter == "" {
		known.Limiter = mostOf(known.Paths)
	}
	m.setSites(known)
}

// mostOf returns the limiter of more than half of the paths, "" if there is none.
func mostOf(paths []Path) string {
	counts := map[string]int{}
	for _, p := range paths {
		counts[p.Limiter]++
	}
	for limiter, n := range counts {
		if 2*n > len(paths) {
			return limiter
		}
	}
	return ""
}

// setSites sets the sites and the task of an incident.
func (m *matching) setSites(known *Incident) {
	known.Sites = nil
	known.Site = ""
	known.Task = ""
	site := func(name string) {
		if name != "" && !slices.Contains(known.Sites, name) {
			known.Sites = append(known.Sites, name)
		}
	}
	for n, p := range known.Paths {
		d := &m.Directions[m.index[Path{Task: p.Task, From: p.From, To: p.To}]]
		site(d.FromSite)
		site(d.ToSite)
		switch {
		case n == 0:
			known.Task = p.Task
		case known.Task != p.Task:
			known.Task = ""
		}
	}
	for _, h := range m.Hosts {
		if slices.Contains(known.Hosts, h.ID) {
			site(h.Site)
		}
	}
	slices.Sort(known.Sites)
	known.Site = m.siteOf(known.Cause)
}

// siteOf returns the site of a cause: its own, that of its host, or that of both hosts of a path.
func (m *matching) siteOf(c Cause) (site string) {
	if c.Kind.Noun() == "site" {
		return c.ID
	}
	for n, id := range strings.Fields(c.ID) {
		at := slices.IndexFunc(m.Hosts, func(h Host) bool { return h.ID == id })
		if c.Kind == OneLink || at < 0 || n > 0 && m.Hosts[at].Site != site {
			return ""
		}
		site = m.Hosts[at].Site
	}
	return site
}

// left returns how many directions of an incident are still off, and whether it is open which. When one is back, the
// others become due at once.
func (m *matching) left(known *Incident) (left, total int, waits bool) {
	var off []int
	for _, p := range known.Paths {
		i, ok := m.index[Path{Task: p.Task, From: p.From, To: p.To}]
		if !ok {
			continue // no longer planned
		}
		d := &m.Directions[i]
		total++
		switch {
		case m.away[d.From] || m.away[d.To]:
			waits = true
		case m.isOff(known, i):
			off = append(off, i)
		case d.Measured.After(known.OpenedAt) && known.BackAt.IsZero():
			known.BackAt = d.Measured
		}
	}
	at := slices.IndexFunc(known.Symptoms, isLevel)
	if known.BackAt.IsZero() || at < 0 {
		return len(off), total, waits
	}
	untested := false
	asked := 0
	for _, i := range off {
		if m.Directions[i].Measured.Before(known.BackAt) {
			untested = true
			if asked < sampleSize && m.ask(i, known.Symptoms[at], known.BackAt) == pending {
				asked++
			}
		}
	}
	if !untested && len(off) > 0 {
		known.BackAt = time.Time{}
	}
	return len(off), total, waits || untested
}

// isOff reports whether a direction still has a symptom of an incident.
func (m *matching) isOff(known *Incident, i int) bool {
	d := &m.Directions[i]
	for _, s := range known.Symptoms {
		if d.sign(s).Off || s == Limited && d.Limiter == known.Limiter {
			return true
		}
	}
	return false
}
