package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// FleetIncidents is the document of a fleet's open incidents, and of those resolved within the last week.
type FleetIncidents struct {
	record.Header
	Open     []FleetIncident    `json:"open"`
	Resolved []FleetIncident    `json:"resolved"`
	Silences []incident.Silence `json:"silences"`
}

// FleetIncident is a fault of one host, site, link or path, with hosts' names.
type FleetIncident struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Kind is what the paths share: host, host-sends, host-receives, site, site-sends, site-receives, link, path
	// (nothing) or fleet.
	Kind     incident.Kind      `json:"kind"`
	Name     string             `json:"name,omitempty"`
	Symptoms []incident.Symptom `json:"symptoms"`
	Limiter  string             `json:"limiter,omitempty"`
	// WindowBytes is the size of a limiter that is a window or a buffer.
	WindowBytes int64 `json:"window_bytes,omitempty"`
	// Confirmed says that the paths which share an end, a site or a link were tested when it was opened.
	Confirmed  bool            `json:"confirmed"`
	Affected   int             `json:"affected"` // directions, or hosts that are away
	Of         int             `json:"of"`       // that are known
	Hosts      []string        `json:"hosts,omitempty"`
	Sites      []string        `json:"sites,omitempty"`
	Task       string          `json:"task,omitempty"`
	Paths      []incident.Path `json:"paths,omitempty"`
	SinceAt    time.Time       `json:"since_at"`
	OpenedAt   time.Time       `json:"opened_at"`
	ResolvedAt time.Time       `json:"resolved_at,omitzero"`
	Silenced   bool            `json:"silenced,omitempty"`
}

// NewFleetIncident returns an incident with the names of its hosts, by ID.
func NewFleetIncident(i incident.Incident, names map[string]string) FleetIncident {
	out := FleetIncident{ID: i.ID, Title: text.IncidentHeadline(&i, names), Kind: i.Cause.Kind,
		Name: i.Cause.ID, Symptoms: i.Symptoms, Limiter: i.Limiter, WindowBytes: i.Window, Confirmed: i.Confirmed,
		Affected: i.Affected, Of: i.Of, Sites: i.Sites, Task: i.Task, SinceAt: i.SinceAt, OpenedAt: i.OpenedAt,
		ResolvedAt: i.ResolvedAt, Silenced: i.Silenced}
	var ends []string
	for id := range strings.FieldsSeq(i.Cause.ID) {
		ends = append(ends, nameIn(names, id))
	}
	out.Name = strings.Join(ends, " ")
	for _, id := range i.Hosts {
		out.Hosts = append(out.Hosts, nameIn(names, id))
	}
	for _, p := range i.Paths {
		p.From = nameIn(names, p.From)
		p.To = nameIn(names, p.To)
		out.Paths = append(out.Paths, p)
	}
	return out
}

// resolvedShown is how long resolved incidents are shown.
const resolvedShown = 7 * 24 * time.Hour

func (s *Server) fleetIncidents(r *http.Request) (*FleetIncidents, error) {
	return s.cfg.Fleet.Incidents(r.Context(), s.cfg.Version)
}

// Incidents returns the open incidents, and those resolved within the last week. version is the program's.
func (f *Fleet) Incidents(ctx context.Context, version string) (*FleetIncidents, error) {
	now := time.Now()
	all, err := f.Store.Incidents(ctx, now.Add(-resolvedShown))
	if err != nil {
		return nil, err
	}
	names, err := f.names(ctx)
	if err != nil {
		return nil, err
	}
	doc := &FleetIncidents{Header: header(version, "fleet-incidents"), Open: []FleetIncident{},
		Resolved: []FleetIncident{}}
	for _, i := range all {
		if i.Open() {
			doc.Open = append(doc.Open, NewFleetIncident(i, names))
		} else {
			doc.Resolved = append(doc.Resolved, NewFleetIncident(i, names))
		}
	}
	slices.SortStableFunc(doc.Open, byWeight)
	doc.Silences, err = f.Store.Silences(ctx, now)
	if doc.Silences == nil {
		doc.Silences = []incident.Silence{}
	}
	return doc, err
}

// byWeight orders incidents: those that are not silenced first, single paths last, the gravest symptom and the most
// paths first.
func byWeight(a, b FleetIncident) int {
	rank := func(i *FleetIncident) (n int) {
		if i.Silenced {
			n += 2
		}
		if i.Kind == incident.OnePath {
			n++
		}
		return n
	}
	return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(incident.Gravest(a.Symptoms), incident.Gravest(b.Symptoms)),
		cmp.Compare(b.Affected, a.Affected))
}

// maxSilence is the longest time of a silence: one that is forgotten ends.
const maxSilence = 90 * 24 * time.Hour

// addSilence makes a silence from kind, name and for.
func (s *Server) addSilence(r *http.Request) (any, error) {
	lasts, err := time.ParseDuration(r.FormValue("for"))
	if err != nil || lasts <= 0 || lasts > maxSilence {
		return nil, &requestError{http.StatusBadRequest, fmt.Sprintf("%.60q is no time up to 2160h", r.FormValue("for")),
			"?kind=host&name=NAME&for=8h"}
	}
	one, err := NewSilence(r.FormValue("kind"), r.FormValue("name"), time.Now().Add(lasts), visitorOf(r.Context()).name)
	if err != nil {
		return nil, &requestError{http.StatusBadRequest, err.Error(), "?kind=host&name=NAME&for=8h"}
	}
	if err := s.cfg.Fleet.Store.AddSilence(r.Context(), one); err != nil {
		return nil, err
	}
	return s.fleetIncidents(r)
}

// silenceKinds are the kinds of silences.
var silenceKinds = []string{"host", "site", "link", "path"}

// NewSilence returns a silence of a host, a site, a link, or a path: two hosts, "A B".
func NewSilence(kind, name string, until time.Time, by string) (s incident.Silence, err error) {
	ends := len(strings.Fields(name))
	switch {
	case !slices.Contains(silenceKinds, kind):
		return s, fmt.Errorf("%.60q is not one of %s", kind, strings.Join(silenceKinds, ", "))
	case kind == "path" && ends != 2:
		return s, fmt.Errorf("a path is two hosts: %.60q is not A B", name)
	case kind != "path" && ends != 1 || len(name) > 200:
		return s, fmt.Errorf("%.60q is not the name of a %s", name, kind)
	}
	return incident.Silence{ID: rand.Text(), Kind: kind, Name: strings.Join(strings.Fields(name), " "), Until: until,
		By: by}, nil
}

func (s *Server) removeSilence(r *http.Request) (any, error) {
	if err := s.cfg.Fleet.Store.RemoveSilence(r.Context(), r.PathValue("id")); err != nil {
		return nil, err
	}
	return s.fleetIncidents(r)
}
