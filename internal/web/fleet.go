package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// Fleet has the data and actions of the pages of a hub's fleet.
type Fleet struct {
	Store *store.Fleet
	// Request requests a test of two agents now.
	Request func(ctx context.Context, a, b string) (store.Job, error)
	// Token returns a new token for one host.
	Token func(ctx context.Context, by string) (string, error)
}

// fleetRoutes returns the routes of a hub.
func (s *Server) fleetRoutes() []route {
	f := s.cfg.Fleet
	if f == nil {
		return nil
	}
	return []route{
		{"GET /fleet", Viewer, page(s, "fleet", s.fleetGrid, fleetPage)},
		{"GET /fleet/hosts", Viewer, page(s, "fleet-hosts", s.fleetHosts, fleetHostsPage)},
		{"GET /fleet/runs", Viewer, page(s, "fleet-runs", s.fleetRuns, fleetRunsPage)},
		{"GET /fleet/events", Viewer, page(s, "fleet-events", s.fleetEvents, fleetEventsPage)},
		{"GET /fleet/incidents", Viewer, page(s, "fleet-incidents", s.fleetIncidents, fleetIncidentsPage)},
		{"GET /fleet/mesh", Viewer, page(s, "fleet-mesh", s.fleetMesh, fleetMeshPage)},
		{"GET /metrics", Viewer, s.fleetMetrics},
		{"GET /api/v1/fleet/live", Viewer, func(w http.ResponseWriter, r *http.Request) { s.stream(s.grids, w, r) }},
		{"GET /api/v1/fleet/grid", Viewer, s.answer(func(r *http.Request) (any, error) { return s.fleetGrid(r) })},
		{"GET /api/v1/fleet/hosts", Viewer, s.answer(func(r *http.Request) (any, error) { return s.fleetHosts(r) })},
		{"GET /api/v1/fleet/runs", Viewer, s.answer(func(r *http.Request) (any, error) { return s.fleetRuns(r) })},
		{"GET /api/v1/fleet/events", Viewer, s.answer(func(r *http.Request) (any, error) { return s.fleetEvents(r) })},
		{"GET /api/v1/fleet/incidents", Viewer, s.answer(func(r *http.Request) (any, error) { return s.fleetIncidents(r) })},
		{"POST /api/v1/fleet/silences", Operator, s.answer(s.addSilence)},
		{"DELETE /api/v1/fleet/silences/{id}", Operator, s.answer(s.removeSilence)},
		{"GET " + meshPath, Viewer, s.answer(func(r *http.Request) (any, error) { return s.fleetMesh(r) })},
		{"POST /api/v1/fleet/test", Operator, s.answer(s.fleetTest)},
		{"POST " + meshPath, Admin, s.answer(s.setFleetMesh)},
		{"POST /api/v1/fleet/tokens", Admin, s.answer(s.fleetToken)},
		{"DELETE /api/v1/fleet/hosts/{name}", Admin, s.answer(s.removeFleetHost)},
	}
}

// FleetHosts is the document of a fleet's hosts.
type FleetHosts struct {
	record.Header
	Hosts []FleetHost `json:"hosts"`
}

// FleetHost is an agent.
type FleetHost struct {
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels,omitempty"`
	SeenAt    time.Time         `json:"seen_at,omitzero"`
	Away      bool              `json:"away"`
	ClockOffS float64           `json:"clock_off_s"`
	Waiting   int               `json:"waiting"` // results in its outbox
	Version   string            `json:"version,omitempty"`
	Kernel    string            `json:"kernel,omitempty"`
	Addresses []string          `json:"addresses,omitempty"`
	Limits    bus.Limits        `json:"limits"`
	JoinedAt  time.Time         `json:"joined_at"`
}

func (s *Server) fleetHosts(r *http.Request) (*FleetHosts, error) {
	return s.cfg.Fleet.Hosts(r.Context(), s.cfg.Version)
}

// Hosts returns the members, sorted by name. version is the program's.
func (f *Fleet) Hosts(ctx context.Context, version string) (*FleetHosts, error) {
	agents, err := f.Store.Agents(ctx)
	if err != nil {
		return nil, err
	}
	doc := &FleetHosts{Header: header(version, "fleet-hosts"), Hosts: []FleetHost{}}
	for _, a := range agents {
		var hello bus.Hello
		_ = json.Unmarshal(a.Hello, &hello) // an agent that was never seen
		h := FleetHost{Name: a.Name, Labels: a.Labels, SeenAt: a.Seen, Away: time.Since(a.Seen) > bus.AwayAfter+bus.HereEvery,
			ClockOffS: a.ClockOff.Seconds(), Waiting: a.Waiting, Version: hello.Version, Kernel: hello.Kernel,
			Limits: hello.Limits, JoinedAt: a.Joined}
		for _, at := range hello.Addresses {
			h.Addresses = append(h.Addresses, at.String())
		}
		doc.Hosts = append(doc.Hosts, h)
	}
	return doc, nil
}

// FleetRuns is the document of a fleet's newest runs.
type FleetRuns struct {
	record.Header
	State mesh.State `json:"state,omitempty"` // of the runs; "" is all
	Runs  []FleetRun `json:"runs"`
}

// FleetRun is a due run with its end.
type FleetRun struct {
	ID     string      `json:"id"`
	Task   string      `json:"task"`
	Hosts  [2]string   `json:"hosts"`
	Origin string      `json:"origin"`
	DueAt  time.Time   `json:"due_at"`
	State  mesh.State  `json:"state"`
	Reason mesh.Reason `json:"reason,omitempty"`
	Detail string      `json:"detail,omitempty"`
	// Unconfirmed says why a result is one host's word: one-end, counts-differ, times-differ, too-short.
	Unconfirmed string        `json:"unconfirmed,omitempty"`
	Figures     []FleetFigure `json:"figures,omitempty"`
}

// FleetFigure is one direction of a run's result.
type FleetFigure struct {
	Sender     string   `json:"sender"`
	GoodputBps *float64 `json:"goodput_bps"`
	Limiter    string   `json:"limiter,omitempty"`
	LostAt     []string `json:"lost_at,omitempty"` // places of loss: SIDE/PLACE, or between-hosts
}

// other returns the host of a run that is not the given one.
func (r *FleetRun) other(host string) string {
	if host == r.Hosts[0] {
		return r.Hosts[1]
	}
	return r.Hosts[0]
}

const fleetRunsAtOnce = 200

func (s *Server) fleetRuns(r *http.Request) (*FleetRuns, error) {
	state := mesh.State(r.URL.Query().Get("state"))
	if state != "" && !slices.Contains(mesh.States, state) {
		return nil, &requestError{http.StatusBadRequest, fmt.Sprintf("there is no state %.60q", state),
			"due, granted, done, failed, refused, skipped or lost"}
	}
	return s.cfg.Fleet.Runs(r.Context(), s.cfg.Version, store.JobFilter{State: state, Limit: fleetRunsAtOnce})
}

// Runs returns runs, the newest first. version is the program's.
func (f *Fleet) Runs(ctx context.Context, version string, filter store.JobFilter) (*FleetRuns, error) {
	jobs, err := f.Store.Jobs(ctx, filter)
	if err != nil {
		return nil, err
	}
	figures, err := f.Store.Figures(ctx, jobs)
	if err != nil {
		return nil, err
	}
	names, err := f.names(ctx)
	if err != nil {
		return nil, err
	}
	doc := &FleetRuns{Header: header(version, "fleet-runs"), State: filter.State, Runs: []FleetRun{}}
	for _, j := range jobs {
		run := FleetRun{ID: j.ID, Task: j.Task, Hosts: [2]string{nameIn(names, j.A), nameIn(names, j.B)},
			Origin: string(j.Origin), DueAt: j.Due, State: j.State, Reason: j.Reason, Detail: j.Detail,
			Unconfirmed: j.Unconfirmed()}
		for _, one := range figures[j.ID] {
			run.Figures = append(run.Figures, FleetFigure{nameIn(names, one.Sender), one.GoodputBps, one.Limiter,
				one.LostAt})
		}
		doc.Runs = append(doc.Runs, run)
	}
	return doc, nil
}

// FleetEvents is the document of a fleet's newest changes.
type FleetEvents struct {
	record.Header
	Events []FleetEvent `json:"events"`
}

// FleetEvent is a change that a run showed.
type FleetEvent struct {
	Run      string    `json:"run"`
	Sender   string    `json:"sender"`
	Receiver string    `json:"receiver"`
	Metric   string    `json:"metric"`
	Kind     string    `json:"kind"`
	At       time.Time `json:"at"`
	Before   string    `json:"before"`
	After    string    `json:"after"`
}

// NewFleetEvent returns a stored event with the names of its hosts, by ID.
func NewFleetEvent(e store.Event, names map[string]string) FleetEvent {
	return FleetEvent{e.Run, nameIn(names, e.Sender), nameIn(names, e.Receiver), e.Metric, e.Kind, e.At, e.Old, e.New}
}

const fleetEventsAtOnce = 200

func (s *Server) fleetEvents(r *http.Request) (*FleetEvents, error) {
	events, err := s.cfg.Fleet.Store.Events(r.Context(), time.Time{}, fleetEventsAtOnce)
	if err != nil {
		return nil, err
	}
	names, err := s.cfg.Fleet.names(r.Context())
	if err != nil {
		return nil, err
	}
	doc := &FleetEvents{Header: s.header("fleet-events"), Events: []FleetEvent{}}
	for _, e := range events {
		doc.Events = append(doc.Events, NewFleetEvent(e, names))
	}
	return doc, nil
}

// FleetMesh is the document of a fleet's mesh file.
type FleetMesh struct {
	record.Header
	Version int64    `json:"version"`
	Text    string   `json:"text"`
	Lines   []string `json:"-"` // of Text, for the page: a line break within a text would be escaped
}

func (s *Server) fleetMesh(r *http.Request) (*FleetMesh, error) {
	text, version, err := s.cfg.Fleet.Store.Mesh(r.Context())
	return s.meshDocument(version, text), err
}

func (s *Server) meshDocument(version int64, text string) *FleetMesh {
	return &FleetMesh{s.header("fleet-mesh"), version, text, strings.Split(strings.TrimRight(text, "\n"), "\n")}
}

// Members returns the hosts as a mesh has them.
func (f *Fleet) Members(ctx context.Context) (members []mesh.Agent, err error) {
	agents, err := f.Store.Agents(ctx)
	for _, a := range agents {
		var hello bus.Hello
		_ = json.Unmarshal(a.Hello, &hello) // an agent that was never seen has no limits
		members = append(members, hello.Agent(a.ID, a.Name, a.Labels))
	}
	return members, err
}

// names returns the members' names by ID.
func (f *Fleet) names(ctx context.Context) (map[string]string, error) {
	agents, err := f.Store.Agents(ctx)
	names := map[string]string{}
	for _, a := range agents {
		names[a.ID] = a.Name
	}
	return names, err
}

func nameIn(names map[string]string, id string) string { return cmp.Or(names[id], id) }

// fleetTest requests a test of two hosts.
func (s *Server) fleetTest(r *http.Request) (any, error) {
	names, err := s.cfg.Fleet.names(r.Context())
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, key := range []string{"a", "b"} {
		name := r.FormValue(key)
		for id, known := range names {
			if known == name {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) != 2 || ids[0] == ids[1] {
		return nil, &requestError{http.StatusBadRequest, "a and b are not two hosts of the fleet", "?a=HOST&b=HOST"}
	}
	job, err := s.cfg.Fleet.Request(r.Context(), ids[0], ids[1])
	if err != nil {
		return nil, err
	}
	return &FleetRuns{Header: s.header("fleet-runs"), Runs: []FleetRun{{ID: job.ID, Task: job.Task,
		Hosts: [2]string{names[job.A], names[job.B]}, Origin: string(job.Origin), DueAt: job.Due, State: mesh.Due}}}, nil
}

// meshPath is where the API has the mesh file.
const meshPath = "/api/v1/fleet/mesh"

// setFleetMesh replaces the mesh file with the request's body.
func (s *Server) setFleetMesh(r *http.Request) (any, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, &requestError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the mesh file is too large: at most %d "+
			"bytes are read", mesh.MaxFile), ""}
	}
	members, err := s.cfg.Fleet.Members(r.Context())
	if err != nil {
		return nil, err
	}
	m, err := mesh.Parse(text)
	if err == nil {
		_, err = m.Check(members)
	}
	if err != nil {
		return nil, &requestError{http.StatusBadRequest, err.Error(), "fullpipe-hub mesh check FILE"}
	}
	version, err := s.cfg.Fleet.Store.SetMesh(r.Context(), string(text), visitorOf(r.Context()).name, time.Now())
	return s.meshDocument(version, string(text)), err
}

// FleetToken is the document of a new token.
type FleetToken struct {
	record.Header
	Token string `json:"token"`
}

func (s *Server) fleetToken(r *http.Request) (any, error) {
	token, err := s.cfg.Fleet.Token(r.Context(), visitorOf(r.Context()).name)
	return &FleetToken{s.header("fleet-token"), token}, err
}

func (s *Server) removeFleetHost(r *http.Request) (any, error) {
	agents, err := s.cfg.Fleet.Store.Agents(r.Context())
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		if a.Name == r.PathValue("name") {
			if err := s.cfg.Fleet.Store.RemoveAgent(r.Context(), a.ID, time.Now()); err != nil {
				return nil, err
			}
			return s.fleetHosts(r)
		}
	}
	return nil, &requestError{http.StatusNotFound, "no host of the fleet has this name", ""}
}
