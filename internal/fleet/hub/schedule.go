package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// takeOver begins to lead: it makes the book from the database, as the hub before left it.
func (h *Hub) takeOver(ctx context.Context, now time.Time) error {
	h.leading = true
	h.mesh = nil // refresh plans anew
	h.version = -1
	h.book = mesh.NewBook(nil, now)
	h.pairs = map[string]*pair{}
	h.jobs = map[string]store.Job{}
	if err := h.refresh(ctx, now); err != nil {
		h.leading = false
		return err
	}
	h.event(Event{Kind: "leads", Detail: fmt.Sprintf("epoch %d", h.lead.Epoch)})
	return nil
}

// refresh reads what other processes may have changed: agents, the mesh file, jobs that users ask for.
func (h *Hub) refresh(ctx context.Context, now time.Time) error {
	changed, err := h.refreshMembers(ctx, now)
	if err != nil || !h.leading {
		return err
	}
	text, version, err := h.Fleet.Mesh(ctx)
	if err != nil {
		return err
	}
	if version != h.version || changed {
		if err := h.replan(ctx, text, now); err != nil {
			return err
		}
		h.version = version
	}
	return h.openJobs(ctx, now)
}

// refreshMembers reads the agents. changed reports whether one joined, left, or has another name, label or limit.
func (h *Hub) refreshMembers(ctx context.Context, now time.Time) (changed bool, err error) {
	agents, err := h.Fleet.Agents(ctx)
	if err != nil {
		return false, err
	}
	h.door.set(agents)
	current := map[string]bool{}
	for _, a := range agents {
		current[a.ID] = true
		m := h.members[a.ID]
		if m == nil {
			m = &member{seen: a.Seen}
			h.members[a.ID] = m
			changed = true
			h.event(Event{Kind: "joined", Agent: a.Name})
		}
		changed = changed || m.Name != a.Name || !sameLabels(m.Labels, a.Labels) || string(m.Hello) != string(a.Hello)
		m.Agent = a
		m.seenFrom = h.door.address(a.ID)
		if err := json.Unmarshal(a.Hello, &m.hello); err != nil {
			m.hello = bus.Hello{}
		}
		if a.Seen.After(m.seen) {
			m.seen = a.Seen
		}
		h.setPresence(m, now)
	}
	for id, m := range h.members {
		if !current[id] {
			delete(h.members, id)
			changed = true
			h.Orders.Disconnect(m.NKey)
			h.event(Event{Kind: "removed", Agent: m.Name})
		}
	}
	return changed, nil
}

func sameLabels(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, value := range a {
		if b[name] != value {
			return false
		}
	}
	return true
}

// setPresence decides by the hub's clock whether an agent is away.
func (h *Hub) setPresence(m *member, now time.Time) {
	away := now.Sub(m.seen) > bus.AwayAfter
	if away != m.away {
		m.away = away
		kind := "back"
		if away {
			kind = "away"
		}
		h.event(Event{Kind: kind, Agent: m.Name})
	}
	if h.book == nil {
		return
	}
	if away {
		h.book.Away(m.ID, m.seen)
	} else {
		h.book.Back(m.ID)
	}
}

// replan applies a mesh file to the agents. Runs that wait for pairs that are no longer planned are skipped.
func (h *Hub) replan(ctx context.Context, text string, now time.Time) error {
	m := mesh.Default(len(h.members))
	if text != "" {
		var err error
		if m, err = mesh.Parse([]byte(text)); err != nil {
			return fmt.Errorf("the mesh file in the database: %w", err)
		}
	}
	var agents []mesh.Agent
	for _, a := range h.members {
		agents = append(agents, mesh.Agent{ID: a.ID, Name: a.Name, Labels: a.Labels, DayBytes: a.hello.Limits.DayBytes})
	}
	plan, err := m.Plan(agents)
	if err != nil {
		return fmt.Errorf("the mesh file in the database: %w", err)
	}
	states, err := h.Fleet.PairStates(ctx)
	if err != nil {
		return err
	}
	pairs := make(map[string]*pair, len(plan.Pairs))
	for _, planned := range plan.Pairs {
		key := planned.Key()
		p := h.pairs[key]
		if p == nil {
			p = &pair{next: states[key].Next, near: states[key].Near}
		}
		if p.next.IsZero() {
			p.next = now.Add(firstGap(len(plan.Pairs), len(agents), m.Tasks[planned.Task], planned.Every))
		}
		p.Planned = planned
		if p.quiet, err = m.Tasks[planned.Task].Quiet(h.Zone); err != nil {
			return err
		}
		pairs[key] = p
	}
	h.mesh = m
	h.pairs = pairs
	h.dues = dueQueue{}
	for key, p := range pairs {
		h.dues.add(p.next, key)
		if !p.test.IsZero() {
			h.dues.add(p.test, key)
		}
	}
	h.book.SetBudgets(m.Budgets(agents), now)
	dropped := h.book.Remove(func(r mesh.Run) bool { return pairs[r.Pair] == nil })
	ends := map[string]store.End{}
	for _, r := range dropped {
		ends[r.ID] = store.End{State: mesh.Skipped, Reason: h.whyDropped(r)}
	}
	h.finish(ctx, ends, now)
	return nil
}

// firstGap returns when the first run of a new pair is due: new pairs are spread over the time that all of them need,
// so that a grid fills as fast as its hosts allow.
func firstGap(pairs, agents int, task mesh.Task, every time.Duration) time.Duration {
	atOnce := max(agents/2, 1)
	all := task.RunTime() * time.Duration(pairs/atOnce+1)
	return rand.N(min(all, every))
}

func (h *Hub) whyDropped(r mesh.Run) mesh.Reason {
	for _, resource := range r.Needs {
		if id, isHost := resource.Host(); isHost && h.members[id] == nil {
			return mesh.AgentRemoved
		}
	}
	return mesh.MeshChanged
}

// openJobs puts jobs of the database into the book that are not in it: those of the hub before, and those that users
// ask for.
func (h *Hub) openJobs(ctx context.Context, now time.Time) error {
	jobs, err := h.Fleet.OpenJobs(ctx)
	if err != nil {
		return err
	}
	ends := map[string]store.End{}
	for _, j := range jobs {
		if h.runs[j.ID] != nil {
			continue
		}
		p := h.pairs[j.Pair]
		needs := []mesh.Resource{mesh.HostResource(j.A), mesh.HostResource(j.B)}
		if p != nil {
			needs = p.Needs
		}
		switch {
		case j.State == mesh.Granted:
			// Another process ordered it: its hosts and links are in use until the end of the order.
			h.book.Lease(j.ID, needs, 0, j.Until.Add(lostAfter), now)
			h.adopt(ctx, j, needs)
		case h.members[j.A] == nil || h.members[j.B] == nil:
			ends[j.ID] = store.End{State: mesh.Skipped, Reason: mesh.AgentRemoved}
		case p == nil && j.Origin != record.Manual:
			ends[j.ID] = store.End{State: mesh.Skipped, Reason: mesh.MeshChanged}
		case now.After(j.Late) && !h.book.Has(j.ID):
			ends[j.ID] = store.End{State: mesh.Skipped, Reason: mesh.HubAway,
				Detail: fmt.Sprintf("from %s to %s", j.Due.Format(time.RFC3339), now.UTC().Format(time.RFC3339))}
		default:
			h.await(j, needs)
		}
	}
	h.finish(ctx, ends, now)
	return nil
}

// taskOf returns a task of the mesh, the defaults for one that is no longer in it.
func (h *Hub) taskOf(name string) mesh.Task {
	if task, ok := h.mesh.Tasks[name]; ok {
		return task
	}
	return mesh.Default(2).Tasks["throughput"]
}

// await puts a due job into the book.
func (h *Hub) await(j store.Job, needs []mesh.Resource) {
	h.jobs[j.ID] = j
	h.book.Due(mesh.Run{ID: j.ID, Pair: j.Pair, Needs: needs, Bytes: h.taskOf(j.Task).RunBytes(), Due: j.Due, Late: j.Late,
		First: j.Origin != record.Scheduled})
}

// due makes jobs of the pairs whose time has come, and returns when the next pair is due.
func (h *Hub) due(ctx context.Context, now time.Time) (next time.Time, err error) {
	var jobs []store.Job
	nexts := map[string]time.Time{}
	for {
		at, key, ok := h.dues.first()
		if !ok || at.After(now) {
			next = at
			break
		}
		h.dues.remove()
		p := h.pairs[key]
		origin := record.Scheduled
		switch {
		case p == nil:
			continue // no longer planned
		case at.Equal(p.test):
			origin = record.Retest
			p.test = time.Time{}
		case at.Equal(p.next):
			p.next = recheck.Schedule{Every: p.Every, Quiet: p.quiet}.Next(now, rand.ExpFloat64())
			nexts[key] = p.next
			h.dues.add(p.next, key)
			if p.quiet.Quiet(now) {
				continue // the first run of a new pair: Next has moved it behind the quiet hours
			}
		default:
			continue // the time has changed since it was added
		}
		jobs = append(jobs, store.Job{ID: newID(now), Pair: key, Task: p.Task, A: p.A, B: p.B, Origin: origin, Due: now,
			Late: now.Add(p.Every / 4), State: mesh.Due})
	}
	if len(nexts) == 0 && len(jobs) == 0 {
		return next, nil
	}
	if err := h.Fleet.Due(ctx, h.lead, jobs, nexts); err != nil {
		h.renewAt = now          // the lead may have gone to another hub
		for key := range nexts { // else they are due again at once
			h.pairs[key].next = now
			h.dues.add(now, key)
		}
		return now, err
	}
	for _, j := range jobs {
		h.await(j, h.pairs[j.Pair].Needs)
	}
	return next, nil
}

// finish ends jobs, by ID, without a result. A database that fails leaves them open: the next refresh finds them.
func (h *Hub) finish(ctx context.Context, ends map[string]store.End, now time.Time) {
	for id := range ends {
		delete(h.jobs, id)
	}
	if err := h.Fleet.Finish(ctx, ends, now); err != nil {
		h.event(Event{Kind: "error", Detail: err.Error()})
		return
	}
	for _, id := range slices.Sorted(maps.Keys(ends)) {
		end := ends[id]
		h.event(Event{Kind: "ended", Run: id, State: end.State, Reason: end.Reason, Detail: end.Detail})
	}
}
