package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/openmetrics"
)

// maxPathMetrics is the number of directions above which the metrics leave out single paths.
const maxPathMetrics = 5000

// fleetMetrics writes the fleet's metrics for Prometheus.
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
	page.Family("agent_up", "gauge", "", "1 if the hub has heard of the agent within a minute.")
	for _, a := range agents {
		names[a.ID] = a.Name
		up := 0.0
		if time.Since(a.Seen) <= bus.AwayAfter+bus.HereEvery {
			up = 1
		}
		page.Sample("agent_up", up, "agent", a.Name)
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
	if err != nil || len(cells) > maxPathMetrics {
		return page, err
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
