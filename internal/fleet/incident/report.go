package incident

import (
	"maps"
	"slices"
	"strings"
)

// decision compares the incidents with the stored ones.
func (m *matching) decision() Decision {
	var d Decision
	for n, known := range m.known {
		before := &m.State.Incidents[n]
		m.report(known)
		if !same(known, before) {
			d.Incidents = append(d.Incidents, *known)
		}
	}
	for _, known := range m.fresh {
		m.report(known)
		d.Incidents = append(d.Incidents, *known)
	}
	d.Notices = m.notices
	d.Wake = m.wake
	d.Pairs = slices.Sorted(maps.Keys(m.pairs))
	d.Waiting = slices.Sorted(maps.Keys(m.waiting))
	return d
}

// report makes the notice of an incident, if one is due.
func (m *matching) report(known *Incident) {
	silenced := m.silenced(known)
	known.Silenced = silenced && known.Open()
	change := Change("")
	switch {
	case known.Open() && silenced:
		return
	case known.Open() && !known.Reported:
		change = Opened
		if known.ReportedBefore {
			change = Reopened
		}
		known.ReportedBefore = true
	case known.Open() && m.changed[known]:
		change = Changed
	case !known.Open() && known.Reported:
		change = Resolved
	default:
		return
	}
	known.Reported = known.Open()
	m.notices = append(m.notices, Notice{Change: change, Incident: *known})
}

// silenced reports whether a silence covers an incident.
func (m *matching) silenced(known *Incident) (yes bool) {
	for _, s := range m.Silences {
		if m.Now.Before(s.Until) && m.covers(s, known) {
			m.wakeAt(s.Until)
			yes = true
		}
	}
	return yes
}

// covers reports whether a silence concerns an incident: its cause, or each of its paths.
func (m *matching) covers(s Silence, known *Incident) bool {
	ids := map[string]string{}
	sites := map[string]string{}
	for _, h := range m.Hosts {
		ids[h.Name] = h.ID
		sites[h.ID] = h.Site
	}
	ofHost := func(id string) bool {
		return s.Kind == "host" && ids[s.Name] == id || s.Kind == "site" && sites[id] == s.Name
	}
	switch known.Cause.Kind.Noun() {
	case "host":
		return ofHost(known.Cause.ID)
	case "site", "link":
		return s.Kind == known.Cause.Kind.Noun() && s.Name == known.Cause.ID
	case "path":
		from, to, _ := strings.Cut(known.Cause.ID, " ")
		a, b, ok := strings.Cut(s.Name, " ")
		both := ok && s.Kind == "path" && (ids[a] == from && ids[b] == to || ids[a] == to && ids[b] == from)
		return both || ofHost(from) || ofHost(to)
	}
	return false
}
