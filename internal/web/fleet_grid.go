package web

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// FleetGrid is the document of a fleet's grid: a row sends and a column receives.
type FleetGrid struct {
	record.Header
	Task  string   `json:"task"`
	Tasks []string `json:"tasks"`
	// Revision changes with each result, each host that joins or leaves, and each reason.
	Revision string         `json:"revision"`
	Sites    bool           `json:"sites"` // rows and columns are sites; a cell is the worst of their pairs
	Names    []string       `json:"names"`
	Rows     []FleetGridRow `json:"rows"`
	// Limiters are the limiters in the grid, for the legend.
	Limiters []string `json:"limiters"`
	// Summary has the open incidents, in at most five lines.
	Summary []string `json:"summary"`
	// FirstDue is when the first test of a fleet without results is due.
	FirstDue time.Time `json:"first_due,omitzero"`
}

// FleetGridRow has the cells of one sender.
type FleetGridRow struct {
	Name  string      `json:"name"`
	Cells []FleetCell `json:"cells"`
}

// FleetCell is one direction of a pair, or of a pair of sites.
type FleetCell struct {
	Receiver   string      `json:"receiver"`
	State      mesh.State  `json:"state,omitempty"`
	Reason     mesh.Reason `json:"reason,omitempty"`
	GoodputBps *float64    `json:"goodput_bps,omitempty"`
	UsualBps   *float64    `json:"usual_bps,omitempty"`
	RTTMinS    *float64    `json:"rtt_min_s,omitempty"`
	Limiter    string      `json:"limiter,omitempty"`
	LostAt     []string    `json:"lost_at,omitempty"` // places of loss: SIDE/PLACE, or between-hosts
	Run        string      `json:"run,omitempty"`     // of the figures
	At         time.Time   `json:"at,omitzero"`       // of the figures
	// Unconfirmed says why the figures are one host's word: one-end, counts-differ.
	Unconfirmed string `json:"unconfirmed,omitempty"`
	Class       string `json:"-"` // of the page's style
	Title       string `json:"-"`
	Shade       string `json:"-"` // by the goodput, where it cannot be compared
}

func (c *FleetCell) classes() string { return strings.TrimSpace(c.Class + " " + c.Shade) }

// sitesAbove is the number of agents above which a grid shows sites.
const sitesAbove = 40

func (s *Server) fleetGrid(r *http.Request) (*FleetGrid, error) {
	return s.cfg.Fleet.Grid(r.Context(), s.cfg.Version, r.URL.Query().Get("task"), sitesAbove)
}

// Grid returns the grid of a task, "" is the first one. A grid of more agents than sitesAbove shows sites. version is
// the program's.
func (f *Fleet) Grid(ctx context.Context, version, task string, sitesAbove int) (*FleetGrid, error) {
	agents, err := f.Store.Agents(ctx)
	if err != nil {
		return nil, err
	}
	revision, err := f.Store.GridRevision(ctx) // before the cells: one that changes meanwhile is read again
	if err != nil {
		return nil, err
	}
	cells, err := f.Store.Grid(ctx, "")
	if err != nil {
		return nil, err
	}
	g := &FleetGrid{Header: header(version, "fleet-grid"), Task: task, Revision: revision,
		Sites: len(agents) > sitesAbove}
	for _, c := range cells {
		if !slices.Contains(g.Tasks, c.Task) {
			g.Tasks = append(g.Tasks, c.Task)
		}
	}
	if g.Task == "" && len(g.Tasks) > 0 {
		g.Task = g.Tasks[0]
	}
	names := map[string]string{}
	for _, a := range agents {
		names[a.ID] = a.Name
	}
	if g.Sites {
		names, err = f.sites(ctx, agents)
		if err != nil {
			return nil, err
		}
	}
	g.fill(names, cells)
	g.Summary, err = f.summary(ctx)
	if err != nil {
		return nil, err
	}
	if len(cells) == 0 {
		g.FirstDue, err = f.firstDue(ctx)
	}
	return g, err
}

// maxSummary is how many lines a summary has.
const maxSummary = 5

// summary returns the open incidents, one a line.
func (f *Fleet) summary(ctx context.Context) (lines []string, err error) {
	doc, err := f.Incidents(ctx, "")
	if err != nil {
		return nil, err
	}
	lines = []string{}
	for i := range doc.Open {
		one := &doc.Open[i]
		if left := len(doc.Open) - i; i == maxSummary-1 && left > 1 {
			return append(lines, fmt.Sprintf("and %d more incidents", left)), nil
		}
		line := one.Title
		if one.Silenced {
			line += " (silenced)"
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// firstDue returns when the earliest run that waits, or that the schedule has, is due.
func (f *Fleet) firstDue(ctx context.Context) (first time.Time, err error) {
	for _, state := range []mesh.State{mesh.Due, mesh.Granted} {
		jobs, err := f.Store.Jobs(ctx, store.JobFilter{State: state, Limit: 1})
		if err != nil || len(jobs) > 0 {
			return time.Now(), err
		}
	}
	pairs, err := f.Store.PairStates(ctx)
	for _, p := range pairs {
		if first.IsZero() || p.Next.Before(first) {
			first = p.Next
		}
	}
	return first, err
}

// sites returns the site of each agent.
func (f *Fleet) sites(ctx context.Context, agents []store.Agent) (map[string]string, error) {
	text, _, err := f.Store.Mesh(ctx)
	if err != nil {
		return nil, err
	}
	m, err := mesh.Parse([]byte(text))
	if err != nil {
		m = &mesh.Mesh{}
	}
	names := map[string]string{}
	for _, a := range agents {
		names[a.ID] = cmp.Or(m.SiteOf(mesh.Agent{ID: a.ID, Name: a.Name, Labels: a.Labels}), "(no site)")
	}
	return names, nil
}

// fill makes the rows. Cells of equal names are one: the worst.
func (g *FleetGrid) fill(names map[string]string, cells []store.Cell) {
	worst := map[[2]string]FleetCell{}
	for _, c := range cells {
		from := names[c.Sender]
		to := names[c.Receiver]
		if c.Task != g.Task || from == "" || to == "" {
			continue
		}
		cell := newFleetCell(c, to)
		key := [2]string{from, to}
		if known, ok := worst[key]; !ok || badness(cell) > badness(known) {
			worst[key] = cell
		}
		if cell.Limiter != "" && !slices.Contains(g.Limiters, cell.Limiter) {
			g.Limiters = append(g.Limiters, cell.Limiter)
		}
	}
	slices.Sort(g.Limiters)
	for _, name := range names {
		if !slices.Contains(g.Names, name) {
			g.Names = append(g.Names, name)
		}
	}
	slices.Sort(g.Names)
	shade(worst)
	for _, from := range g.Names {
		row := FleetGridRow{Name: from}
		for _, to := range g.Names {
			cell, ok := worst[[2]string{from, to}]
			if !ok {
				cell = FleetCell{Receiver: to, Class: "empty", Title: fmt.Sprintf("%s → %s: not measured", from, to)}
				if from == to {
					cell.Class = "self"
					cell.Title = ""
				}
			} else {
				cell.Title = fmt.Sprintf("%s → %s: %s", from, to, cell.Title)
			}
			row.Cells = append(row.Cells, cell)
		}
		g.Rows = append(g.Rows, row)
	}
}

// shades is the number of steps from the lowest to the highest goodput of a grid.
const shades = 4

// shade gives cells without a comparison a step of the goodput, between the lowest and the highest of the grid by their
// logarithms.
func shade(cells map[[2]string]FleetCell) {
	low := math.Inf(1)
	high := 0.0
	for _, c := range cells {
		if c.GoodputBps != nil && *c.GoodputBps > 0 {
			low = min(low, *c.GoodputBps)
			high = max(high, *c.GoodputBps)
		}
	}
	for key, c := range cells {
		if c.Class != string(record.TooFew) || *c.GoodputBps <= 0 {
			continue
		}
		step := shades
		if high > low {
			step = 1 + int(math.Min(shades*math.Log(*c.GoodputBps/low)/math.Log(high/low), shades-1))
		}
		c.Shade = fmt.Sprintf("shade-%d", step)
		cells[key] = c
	}
}

func newFleetCell(c store.Cell, to string) FleetCell {
	cell := FleetCell{Receiver: to, State: c.State, Reason: c.Reason, GoodputBps: c.GoodputBps, UsualBps: c.UsualBps,
		RTTMinS: c.RTTMinS, Limiter: c.Limiter, LostAt: c.LostAt, Run: c.Measured, At: c.MeasuredAt,
		Unconfirmed: c.Unconfirmed}
	switch {
	case c.State != mesh.Done:
		cell.Class = "missing"
		cell.Title = fmt.Sprintf("last run %s", c.State)
		if c.Reason != "" {
			cell.Title += ": " + string(c.Reason)
		}
	case c.GoodputBps == nil:
		cell.Class = "missing"
	case c.UsualBps == nil:
		cell.Class = string(record.TooFew)
	default:
		cell.Class = string(record.StandingOf(*c.GoodputBps, changepoint.Past{Level: *c.UsualBps, Within: c.WithinBps}))
	}
	if c.Unconfirmed != "" {
		cell.Title += " unconfirmed: " + c.Unconfirmed
	}
	if c.GoodputBps != nil {
		cell.Title = fmt.Sprintf("%s, limited by %s.%s %s", units.Rate(*c.GoodputBps), cmp.Or(c.Limiter, "unknown"),
			lostAtText(c.LostAt), cell.Title)
	}
	return cell
}

// badness orders cells of a pair of sites.
func badness(c FleetCell) int {
	return slices.Index([]string{"empty", "higher", "few", "usual", "lower", "missing"}, c.Class)
}
