package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/units"
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
	const remedy = "?kind=host&name=NAME&for=8h"
	lasts, err := units.ParseTime(r.FormValue("for"))
	if err != nil {
		return nil, &requestError{http.StatusBadRequest, err.Error(), remedy}
	}
	err = s.cfg.Fleet.Silence(r.Context(), r.FormValue("kind"), r.FormValue("name"), lasts, visitorOf(r.Context()).name)
	var refused *SilenceError
	if errors.As(err, &refused) {
		return nil, &requestError{http.StatusBadRequest, err.Error(), remedy}
	}
	if err != nil {
		return nil, err
	}
	return s.fleetIncidents(r)
}

// silenceKinds are the kinds of silences.
var silenceKinds = []string{"host", "site", "link", "path"}

// SilenceError says why there is no such silence.
type SilenceError struct{ text string }

func (e *SilenceError) Error() string { return e.text }

// Silence suppresses the reports of a host, a site, a link, or a path, which is two hosts: "A B". The error is a
// SilenceError if there is no such thing.
func (f *Fleet) Silence(ctx context.Context, kind, name string, lasts time.Duration, by string) error {
	refused := func(format string, args ...any) error { return &SilenceError{fmt.Sprintf(format, args...)} }
	ends := strings.Fields(name)
	switch {
	case !slices.Contains(silenceKinds, kind):
		return refused("%.60q is not one of %s", kind, strings.Join(silenceKinds, ", "))
	case kind == "path" && len(ends) != 2:
		return refused("%.60q: a path is two hosts, as in \"A B\"", name)
	case kind != "path" && len(ends) != 1:
		return refused("%.60q is not the name of a %s", name, kind)
	case lasts <= 0 || lasts > maxSilence:
		return refused("%s is not a time up to %s", units.Time(lasts), units.Time(maxSilence))
	}
	known, err := f.namesOf(ctx, kind)
	if err != nil {
		return err
	}
	for _, end := range ends {
		if !slices.Contains(known, end) {
			return refused("there is no %s %.60q", strings.Replace(kind, "path", "host", 1), end)
		}
	}
	return f.Store.AddSilence(ctx, incident.Silence{ID: strings.ToLower(rand.Text()[:8]), Kind: kind,
		Name: strings.Join(ends, " "), Until: time.Now().Add(lasts), By: by})
}

// silenceCommand returns the command that silences an open incident, "" if it has none.
func silenceCommand(i *FleetIncident) string {
	noun := i.Kind.Noun()
	if !i.ResolvedAt.IsZero() || i.Silenced || !slices.Contains(silenceKinds, noun) {
		return ""
	}
	return "fullpipe-hub silence " + noun + " " + i.Name + " --for 8h"
}

// namesOf returns what can be silenced.
func (f *Fleet) namesOf(ctx context.Context, kind string) ([]string, error) {
	if kind == "host" || kind == "path" {
		names, err := f.names(ctx)
		return slices.Collect(maps.Values(names)), err
	}
	text, _, err := f.Store.Mesh(ctx)
	if err != nil {
		return nil, err
	}
	m, err := mesh.Parse([]byte(text))
	if err != nil || kind == "site" {
		return slices.Collect(maps.Keys(m.Sites)), err
	}
	return slices.Collect(maps.Keys(m.Links)), nil
}

func (s *Server) removeSilence(r *http.Request) (any, error) {
	if err := s.cfg.Fleet.Store.RemoveSilence(r.Context(), r.PathValue("id")); err != nil {
		return nil, err
	}
	return s.fleetIncidents(r)
}
