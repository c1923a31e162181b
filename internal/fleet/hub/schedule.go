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

// takeOver begins to lead: it makes the book from the database, as the hub before left it, and from its own runs if it
// has led before.
func (h *Hub) takeOver(ctx context.Context, lead store.Lead, now time.Time) error {
	h.version = -1
	h.setOther(false)
	h.mu.Lock()
	h.lead = lead
	h.leading = true
	h.book = mesh.NewBook(nil, now)
	h.pairs = map[string]*pair{}
	h.jobs = map[string]store.Job{}
	h.judging = judging{next: now, since: now}
	h.sendAt(now)
	for id, r := range h.runs {
		h.book.Lease(id, r.needs, r.job.Charged, r.job.Until.Add(lostAfter), now)
	}
	h.mu.Unlock()
	if err := h.refresh(ctx, now); err != nil {
		h.resign()
		return err
	}
	h.event(Event{Kind: "leads", Detail: fmt.Sprintf("epoch %d", h.lead.Epoch)})
	return nil
}

// refresh reads what other processes may have changed: agents, the mesh file, jobs that users ask for.
func (h *Hub) refresh(ctx context.Context, now time.Time) error {
	if err := h.refreshURLs(ctx, now); err != nil {
		return err
	}
	if err := h.refreshMembers(ctx, now); err != nil {
		return err
	}
	if err := h.readIncidents(ctx, now); err != nil || !h.leading {
		return err
	}
	text, version, err := h.Fleet.Mesh(ctx)
	if err != nil {
		return err
	}
	if version != h.version {
		if err := h.replan(ctx, text, now); err != nil {
			return err
		}
		h.version = version
	}
	return h.openJobs(ctx, now)
}

// refreshMembers reads the agents.
func (h *Hub) refreshMembers(ctx context.Context, now time.Time) error {
	agents, err := h.Fleet.Agents(ctx)
	if err != nil {
		return err
	}
	h.door.set(agents)
	if h.setMembers(agents, now) {
		h.version = -1 // also if the plan for them fails now
	}
	return nil
}

// setMembers replaces the members. changed reports whether one joined, left, or has another name, label or limit.
func (h *Hub) setMembers(agents []store.Agent, now time.Time) (changed bool) {
	var removed []*member
	h.mu.Lock()
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
		m.hello = helloOf(a)
		if a.Seen.After(m.seen) {
			m.seen = a.Seen
		}
		h.setPresence(m, now)
	}
	for id, m := range h.members {
		if !current[id] {
			delete(h.members, id)
			removed = append(removed, m)
		}
	}
	h.mu.Unlock()
	for _, m := range removed {
		h.Orders.Disconnect(m.NKey)
		h.event(Event{Kind: "removed", Agent: m.Name})
	}
	return changed || len(removed) > 0
}

// helloOf returns an agent's stored introduction, empty if it cannot be read.
func helloOf(a store.Agent) (hello bus.Hello) {
	if err := json.Unmarshal(a.Hello, &hello); err != nil {
		return bus.Hello{}
	}
	return hello
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
		h.noteChange(now)
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
	agents := h.meshAgents()
	plan, err := m.Plan(agents)
	if err != nil {
		return fmt.Errorf("the mesh file in the database: %w", err)
	}
	states, err := h.Fleet.PairStates(ctx)
	if err != nil {
		return err
	}
	quiet := map[string]recheck.Hours{} // by task
	for name, task := range m.Tasks {
		quiet[name], err = task.Quiet(h.Zone)
		if err != nil {
			return err
		}
	}
	charges, err := h.charges(ctx, m, plan, now)
	if err != nil {
		return err
	}
	h.finish(ctx, h.setPlan(m, plan, charges, quiet, states, now), now)
	return nil
}

// meshAgents returns the members as the mesh has them.
func (h *Hub) meshAgents() (agents []mesh.Agent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.members {
		agents = append(agents, a.hello.Agent(a.ID, a.Name, a.Labels))
	}
	return agents
}

// setPlan replaces the planned pairs. It returns how the runs end that wait for other pairs.
func (h *Hub) setPlan(m *mesh.Mesh, plan *mesh.Plan, charges []mesh.Charge, quiet map[string]recheck.Hours,
	states map[string]store.PairState, now time.Time) map[string]store.End {
	h.mu.Lock()
	defer h.mu.Unlock()
	pairs := make(map[string]*pair, len(plan.Pairs))
	for _, planned := range plan.Pairs {
		key := planned.Key()
		p := h.pairs[key]
		if p == nil {
			p = &pair{next: states[key].Next, near: states[key].Near, asked: states[key].Asked}
		}
		// or the clock was set back
		if p.next.IsZero() || p.next.After(now.Add(maxGaps*planned.Every)) {
			p.next = now.Add(firstGap(len(plan.Pairs), len(h.members), m.Tasks[planned.Task], planned.Every))
		}
		p.Planned = planned
		p.quiet = quiet[planned.Task]
		pairs[key] = p
	}
	h.mesh = m
	h.pairs = pairs
	h.outbox.syncAt = now
	h.noteChange(now)
	h.dues = dueQueue{}
	for key, p := range pairs {
		h.dues.add(p.next, key)
		if !p.test.IsZero() {
			h.dues.add(p.test, key)
		}
	}
	h.budgets = plan.Budgets
	h.quiet = quiet
	h.book.SetBudgets(plan.Budgets, charges, now)
	dropped := h.book.Remove(func(r mesh.Run) bool { return pairs[r.Pair] == nil })
	ends := map[string]store.End{}
	for _, r := range dropped {
		ends[r.ID] = store.End{State: mesh.Skipped, Reason: h.whyDropped(r)}
	}
	return ends
}

// maxGaps is the longest gap between two runs of a pair, in mean ones, that an earlier hub's
// schedule keeps: 99.9 % of exponential gaps are shorter.
const maxGaps = 7

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
	h.mu.Lock()
	known := maps.Clone(h.runs) // before the read: one of them that ends meanwhile is still open in it
	h.mu.Unlock()
	jobs, err := h.Fleet.OpenJobs(ctx)
	if err != nil {
		return err
	}
	jobs = slices.DeleteFunc(jobs, func(j store.Job) bool { return known[j.ID] != nil })
	h.finish(ctx, h.takeJobs(ctx, jobs, now), now)
	return nil
}

// takeJobs puts jobs into the book, and returns how the others end.
func (h *Hub) takeJobs(ctx context.Context, jobs []store.Job, now time.Time) map[string]store.End {
	h.mu.Lock()
	defer h.mu.Unlock()
	ends := map[string]store.End{}
	for _, j := range jobs {
		p := h.pairs[j.Pair]
		needs := h.needsOf(h.mesh, j.A, j.B)
		switch {
		case j.State == mesh.Granted:
			// Another process ordered it: its hosts and links are in use until the end of the
			// order. A later one is of a clock that was set back.
			if longest := now.Add(bus.MaxOrder); j.Until.After(longest) {
				j.Until = longest
			}
			h.book.Lease(j.ID, needs, j.Charged, j.Until.Add(lostAfter), now)
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
	return ends
}

// taskOf returns a task of the mesh, the defaults for one that is no longer in it.
func (h *Hub) taskOf(name string) mesh.Task {
	if task, ok := h.mesh.Tasks[name]; ok {
		return task
	}
	return mesh.Default(2).Tasks["throughput"]
}

// await puts a due job into the book. mu is locked.
func (h *Hub) await(j store.Job, needs []mesh.Resource) {
	h.jobs[j.ID] = j
	h.book.Due(mesh.Run{ID: j.ID, Pair: j.Pair, Needs: needs, Bytes: h.taskOf(j.Task).RunBytesWithin(needs, h.budgets),
		Due: j.Due, Late: j.Late, First: j.Origin != record.Scheduled})
}

// finish ends jobs, by ID, without a result. A database that fails leaves them open: the next refresh finds them.
func (h *Hub) finish(ctx context.Context, ends map[string]store.End, now time.Time) {
	if len(ends) == 0 {
		return
	}
	h.mu.Lock()
	for id := range ends {
		delete(h.jobs, id)
	}
	h.noteChange(now)
	h.mu.Unlock()
	if err := h.Fleet.Finish(ctx, ends, now); err != nil {
		h.event(Event{Kind: "error", Detail: err.Error()})
		return
	}
	for _, id := range slices.Sorted(maps.Keys(ends)) {
		end := ends[id]
		h.event(Event{Kind: "ended", Run: id, State: end.State, Reason: end.Reason, Detail: end.Detail})
	}
}
