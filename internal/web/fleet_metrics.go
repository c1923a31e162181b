package web

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/openmetrics"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// fleetMetrics writes the fleet's metrics for Prometheus. ?site= selects the directions from and to a site.
func (s *Server) fleetMetrics(w http.ResponseWriter, r *http.Request) {
	page, err := s.fleetPage(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	kind := "text/plain; version=0.0.4; charset=utf-8"
	if page.Open {
		kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	_ = page.End(w) // the scraper has left
}

func (s *Server) fleetPage(r *http.Request) (*openmetrics.Page, error) {
	f := s.cfg.Fleet.Store
	page := &openmetrics.Page{Prefix: "fullpipe_fleet_",
		Open: strings.Contains(r.Header.Get("Accept"), "application/openmetrics-text")}
	agents, err := f.Agents(r.Context())
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, a := range agents {
		names[a.ID] = a.Name
	}
	if err := s.addAgentMetrics(r.Context(), page, agents); err != nil {
		return nil, err
	}
	if err := s.addIncidentMetrics(r.Context(), page); err != nil {
		return nil, err
	}
	counts, err := f.CountJobs(r.Context(), time.Time{})
	if err != nil {
		return nil, err
	}
	page.Family("runs", "gauge", "", "Runs in the database by state and reason.")
	for end, n := range counts {
		page.Sample("runs", float64(n), "state", string(end.State), "reason", string(end.Reason))
	}
	page.Family("refused_changes", "counter", "", "Requests to change something that this hub process refused.")
	page.Sample("refused_changes_total", float64(s.refusedChanges.Load()))
	cells, err := f.Grid(r.Context(), "")
	if err != nil {
		return nil, err
	}
	if wanted := r.FormValue("site"); wanted != "" {
		sites, err := s.cfg.Fleet.sites(r.Context(), agents)
		if err != nil {
			return nil, err
		}
		cells = slices.DeleteFunc(cells, func(c store.Cell) bool {
			return sites[c.Sender] != wanted && sites[c.Receiver] != wanted
		})
	}
	for _, family := range []struct {
		name, unit, help string
		value            func(i int) *float64
	}{
		{"goodput_bps", "", "Goodput of the last run of a direction, bit/s.",
			func(i int) *float64 { return cells[i].GoodputBps }},
		{"usual_bps", "", "Usual goodput of a direction, bit/s.", func(i int) *float64 { return cells[i].UsualBps }},
		{"usual_low_bps", "", "Lower end of the usual goodput of a direction, bit/s.", func(i int) *float64 {
			if cells[i].UsualBps == nil {
				return nil
			}
			return new(*cells[i].UsualBps - cells[i].WithinBps)
		}},
		{"rtt_min_seconds", "seconds", "Least round trip of the last run.", func(i int) *float64 { return cells[i].RTTMinS }},
	} {
		page.Family(family.name, "gauge", family.unit, family.help)
		for i, c := range cells {
			if v := family.value(i); v != nil {
				page.Sample(family.name, *v, "task", c.Task, "from", nameIn(names, c.Sender), "to", nameIn(names, c.Receiver))
			}
		}
	}
	page.Family("limited", "gauge", "", "1 for the limiter of the last run of a direction.")
	for _, c := range cells {
		if c.Limiter != "" {
			page.Sample("limited", 1, "task", c.Task, "from", nameIn(names, c.Sender), "to", nameIn(names, c.Receiver),
				"limiter", c.Limiter)
		}
	}
	page.Family("lost", "gauge", "", "1 for each place where the last run of a direction lost packets.")
	for _, c := range cells {
		for _, place := range c.LostAt {
			page.Sample("lost", 1, "task", c.Task, "from", nameIn(names, c.Sender), "to", nameIn(names, c.Receiver),
				"place", place)
		}
	}
	return page, nil
}

// addAgentMetrics adds the agents: whether they are there, their outbox and their budget.
func (s *Server) addAgentMetrics(ctx context.Context, page *openmetrics.Page, agents []store.Agent) error {
	spent, err := s.cfg.Fleet.Store.Spent(ctx, time.Now().Add(-24*time.Hour))
	if err != nil {
		return err
	}
	for _, family := range []struct {
		name, unit, help string
		value            func(a *store.Agent) float64
	}{
		{"agent_up", "", "1 if the hub has heard of the agent within a minute.", func(a *store.Agent) float64 {
			if time.Since(a.Seen) <= bus.AwayAfter+bus.HereEvery {
				return 1
			}
			return 0
		}},
		{"agent_outbox_results", "", "Results in the agent's outbox by its last heartbeat.",
			func(a *store.Agent) float64 { return float64(a.Waiting) }},
		{"agent_day_bytes", "bytes", "Payload of the agent's runs in the last 24 hours, both ways.",
			func(a *store.Agent) float64 { return float64(spent[a.ID]) }},
	} {
		page.Family(family.name, "gauge", family.unit, family.help)
		for i := range agents {
			page.Sample(family.name, family.value(&agents[i]), "agent", agents[i].Name)
		}
	}
	return nil
}

// addIncidentMetrics adds the open incidents.
func (s *Server) addIncidentMetrics(ctx context.Context, page *openmetrics.Page) error {
	doc, err := s.cfg.Fleet.Incidents(ctx, s.cfg.Version)
	if err != nil {
		return err
	}
	page.Family("incident", "gauge", "", "1 for each open incident, 0 if it is silenced.")
	for i := range doc.Open {
		one := &doc.Open[i]
		value := 1.0
		if one.Silenced {
			value = 0
		}
		page.Sample("incident", value, "kind", one.Kind.Noun(), "name", one.Name, "symptom", string(one.Symptoms[0]))
	}
	return nil
}
