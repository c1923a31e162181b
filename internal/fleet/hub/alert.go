package hub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// collectTime is how long changes are collected, so that those with a common cause become one alert.
const collectTime = time.Minute

// Alert is one change, or several with a common cause.
type Alert struct {
	Cause   mesh.Cause // zero for a single change
	Task    string
	Change  string // such as "goodput dip" or "limiter receiver-window"
	Events  []store.Event
	Names   map[string]string // agents by ID
	AsUsual int               // directions with the same cause that are as usual
	Sites   []string          // of the agents
}

// matches reports whether an alert of the mesh file concerns this one.
func (a Alert) matches(m mesh.Alert) bool {
	kinds := len(m.On) == 0
	for _, e := range a.Events {
		kinds = kinds || slices.Contains(m.On, e.Metric) || slices.Contains(m.On, e.Kind)
	}
	sites := len(m.Sites) == 0 || slices.ContainsFunc(a.Sites, func(site string) bool {
		return slices.Contains(m.Sites, site)
	})
	return kinds && sites
}

// noteChanges collects events for the next alerts.
func (h *Hub) noteChanges(events []store.Event, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = append(h.changes, events...)
	if h.alertAt.IsZero() {
		h.alertAt = now.Add(collectTime)
	}
}

// takeChanges returns the collected changes when they have been collected long enough.
func (h *Hub) takeChanges(now time.Time) []store.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.alertAt.IsZero() || now.Before(h.alertAt) {
		return nil
	}
	changes := h.changes
	h.changes = nil
	h.alertAt = time.Time{}
	return changes
}

// flushAlerts reports the collected changes, grouped by their common cause.
func (h *Hub) flushAlerts(ctx context.Context, now time.Time) {
	byTask := map[string][]store.Event{}
	for _, e := range h.takeChanges(now) {
		byTask[e.Task] = append(byTask[e.Task], e)
	}
	for task, events := range byTask {
		cells, err := h.Fleet.Grid(ctx, task)
		if err != nil {
			h.event(Event{Kind: "error", Detail: err.Error()})
			h.noteChanges(events, now) // tried again
			continue
		}
		for _, a := range h.group(task, events, cells) {
			cause := ""
			if a.Cause != (mesh.Cause{}) {
				cause = string(a.Cause.Kind) + " " + a.Cause.Name
			}
			if err := h.Fleet.MarkSent(ctx, a.Events, cause, now); err != nil {
				h.event(Event{Kind: "error", Detail: err.Error()})
			}
			if h.Alert != nil {
				to := h.alertTargets(a)
				h.work.Go(func() { h.Alert(ctx, a, to) })
			}
		}
	}
}

// alertTargets returns the alerts of the mesh file that an alert matches, sorted by name.
func (h *Hub) alertTargets(a Alert) (all []mesh.Alert) {
	for _, name := range slices.Sorted(maps.Keys(h.mesh.Alerts)) {
		if m := h.mesh.Alerts[name]; a.matches(m) {
			all = append(all, m)
		}
	}
	return all
}

// group makes alerts from the events of a task. cells are the directions that were measured.
func (h *Hub) group(task string, events []store.Event, cells []store.Cell) (alerts []Alert) {
	type key struct{ sender, receiver, change string }
	byKey := map[key][]store.Event{}
	changed := map[[2]string][]string{}
	for _, e := range events {
		k := key{e.Sender, e.Receiver, changeOf(e)}
		if byKey[k] == nil {
			changed[[2]string{e.Sender, e.Receiver}] = append(changed[[2]string{e.Sender, e.Receiver}], k.change)
		}
		byKey[k] = append(byKey[k], e)
	}
	var directions []mesh.Direction
	for _, c := range cells {
		if c.GoodputBps == nil {
			continue
		}
		kinds := changed[[2]string{c.Sender, c.Receiver}]
		if len(kinds) == 0 {
			kinds = []string{""}
		}
		for _, kind := range kinds {
			d := h.direction(task, c)
			d.Change = kind
			directions = append(directions, d)
		}
	}
	for _, g := range mesh.GroupChanges(directions) {
		a := Alert{Cause: g.Cause, Task: task, Change: g.Change, AsUsual: g.AsUsual, Names: map[string]string{}}
		for _, i := range g.Changed {
			d := directions[i]
			a.Events = append(a.Events, byKey[key{d.From, d.To, d.Change}]...)
			for _, id := range []string{d.From, d.To} {
				a.Names[id] = h.memberName(id)
			}
			for _, site := range []string{d.FromSite, d.ToSite} {
				if site != "" {
					a.Sites = append(a.Sites, site)
				}
			}
		}
		switch a.Cause.Kind {
		case mesh.HostSends, mesh.HostReceives, mesh.OneHost:
			a.Cause.Name = h.memberName(a.Cause.Name)
		}
		alerts = append(alerts, a)
	}
	return alerts
}

// changeOf names a change so that equal changes of several paths have equal names.
func changeOf(e store.Event) string {
	switch e.Metric {
	case recheck.Goodput, recheck.RTT:
		return e.Metric + " " + e.Kind
	}
	return e.Metric + " " + e.New
}

// direction returns a cell with its sites and links.
func (h *Hub) direction(task string, c store.Cell) mesh.Direction {
	d := mesh.Direction{From: c.Sender, To: c.Receiver}
	if m := h.members[c.Sender]; m != nil {
		d.FromSite = h.mesh.SiteOf(mesh.Agent{ID: m.ID, Name: m.Name, Labels: m.Labels})
	}
	if m := h.members[c.Receiver]; m != nil {
		d.ToSite = h.mesh.SiteOf(mesh.Agent{ID: m.ID, Name: m.Name, Labels: m.Labels})
	}
	a := c.Sender
	b := c.Receiver
	if b < a {
		a = c.Receiver
		b = c.Sender
	}
	if p := h.pairs[mesh.Pair{Task: task, A: a, B: b}.Key()]; p != nil {
		for _, r := range p.Needs {
			if link, ok := r.Link(); ok {
				d.Links = append(d.Links, link)
			}
		}
	}
	return d
}

func (h *Hub) memberName(id string) string {
	if m := h.members[id]; m != nil {
		return m.Name
	}
	return id
}

// String describes an alert in one line for each change.
func (a Alert) String() string {
	var b strings.Builder
	switch a.Cause.Kind {
	case "":
	case mesh.HostReceives:
		fmt.Fprintf(&b, "%d of %d paths into host %s: %s\n", len(a.Events), len(a.Events)+a.AsUsual, a.Cause.Name, a.Change)
	case mesh.HostSends:
		fmt.Fprintf(&b, "%d of %d paths from host %s: %s\n", len(a.Events), len(a.Events)+a.AsUsual, a.Cause.Name, a.Change)
	case mesh.SiteReceives:
		fmt.Fprintf(&b, "%d of %d paths into site %s: %s\n", len(a.Events), len(a.Events)+a.AsUsual, a.Cause.Name, a.Change)
	case mesh.SiteSends:
		fmt.Fprintf(&b, "%d of %d paths from site %s: %s\n", len(a.Events), len(a.Events)+a.AsUsual, a.Cause.Name, a.Change)
	default:
		fmt.Fprintf(&b, "%d of %d paths through %s %s: %s\n", len(a.Events), len(a.Events)+a.AsUsual, a.Cause.Kind,
			a.Cause.Name, a.Change)
	}
	for _, e := range a.Events {
		fmt.Fprintf(&b, "%s → %s: %s %s since %s, %s before\n", a.Names[e.Sender], a.Names[e.Receiver], e.Metric, e.New,
			e.At.UTC().Format("15:04"), e.Old)
	}
	return b.String()
}
