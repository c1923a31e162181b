package hub

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// start starts the runs whose hosts and links are free, and ends those whose latest start has passed.
func (h *Hub) start(ctx context.Context, now time.Time) {
	ends := h.quieted(now)
	h.mu.Lock()
	started, skipped := h.book.Next(now, func(r mesh.Run) time.Duration { return h.orderDuration(r) + lostAfter })
	h.mu.Unlock()
	for _, s := range skipped {
		detail := s.By
		if id, isHost := s.Resource.Host(); isHost && h.members[id] != nil {
			detail = h.members[id].Name + " " + s.By
		} else if name, isLink := s.Resource.Link(); isLink {
			detail = name + " " + s.By
		}
		ends[s.ID] = store.End{State: mesh.Skipped, Reason: s.Reason, Detail: detail}
	}
	h.finish(ctx, ends, now)
	h.grant(ctx, started, now)
}

// grant orders runs in the database, all in one transaction, and carries them out.
func (h *Hub) grant(ctx context.Context, started []mesh.Run, now time.Time) {
	grants := h.grantsFor(started)
	granted, err := h.Fleet.Grant(ctx, h.lead, now, grants...)
	if err != nil {
		h.event(Event{Kind: "error", Detail: err.Error()})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range started {
		if !granted[r.ID] {
			h.book.Free(r.ID, 0, now) // still due in the database, or another hub's: the next refresh finds out
		}
	}
	needs := map[string][]mesh.Resource{}
	for _, r := range started {
		needs[r.ID] = r.Needs
	}
	for _, g := range grants {
		if granted[g.ID] {
			h.launch(ctx, h.jobs[g.ID], g, needs[g.ID], now)
		}
		delete(h.jobs, g.ID)
	}
}

// grantsFor returns the orders of runs, except those of an agent that was removed: the next refresh ends them.
func (h *Hub) grantsFor(started []mesh.Run) (grants []store.Grant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range started {
		job := h.jobs[r.ID]
		if h.members[job.A] == nil || h.members[job.B] == nil {
			continue
		}
		near := job.A
		if p := h.pairs[job.Pair]; p != nil && p.near != "" {
			near = p.near
		}
		grants = append(grants, store.Grant{ID: r.ID, Near: near, Lasts: h.orderDuration(r), Bytes: r.Bytes})
	}
	return grants
}

// orderDuration returns the maximum duration of a run's order: both directions, runMargin and admissionTime.
func (h *Hub) orderDuration(r mesh.Run) time.Duration {
	task := h.taskOf(h.taskName(r.Pair))
	return 2*time.Duration(task.Time) + runMargin + admissionTime
}

func (h *Hub) taskName(key string) string {
	if p := h.pairs[key]; p != nil {
		return p.Task
	}
	return ""
}

// launch carries out a granted run on a goroutine of its own. mu is locked.
func (h *Hub) launch(ctx context.Context, job store.Job, g store.Grant, needs []mesh.Resource, now time.Time) {
	job.Near = g.Near
	job.Granted = now
	job.Until = now.Add(g.Lasts)
	job.Charged = g.Bytes
	task := h.taskOf(job.Task)
	lead := h.lead
	r := &run{job: job, needs: needs, near: g.Near, bytes: h.directionBytes(task, g.Bytes, needs),
		failed: make(chan bus.Failed, 1), done: make(chan struct{})}
	h.runs[job.ID] = r
	h.event(Event{Kind: "started", Run: job.ID, Pair: h.names(job)})
	h.work.Go(func() {
		moved := h.carryOut(ctx, r, task, lead, job.Until)
		h.free(job.ID, moved)
	})
}

// free ends a run's use of its hosts and links.
func (h *Hub) free(id string, moved int64) {
	h.mu.Lock()
	delete(h.runs, id)
	if h.book != nil {
		h.book.Free(id, moved, time.Now())
	}
	h.mu.Unlock()
	h.poke()
}

// carryOut orders a run of both agents and waits for its end. It returns the bytes that it moved, or may have moved.
func (h *Hub) carryOut(ctx context.Context, g *run, task mesh.Task, lead store.Lead, end time.Time) (moved int64) {
	near := g.job.Near
	firstDetail := "" // of the other way round
	for attempt := range 2 {
		ended, final := h.attempt(ctx, g, task, lead, near, end)
		unreachable := final.Reason == mesh.Unreachable
		switch {
		case ended && final.State == mesh.Granted:
			return g.job.Charged // this hub stops
		case ended:
			h.remember(ctx, g.job.Pair, near)
			return g.moved
		case unreachable && attempt == 0 && time.Until(end) > 2*time.Duration(task.Time):
			near = g.job.Other(near)
			firstDetail = final.Detail + "; "
			if err := h.Fleet.SetNear(ctx, g.job.ID, near); err != nil {
				return g.job.Charged
			}
			continue
		}
		if unreachable {
			final.Detail = firstDetail + final.Detail
		}
		h.finish(context.WithoutCancel(ctx), map[string]store.End{g.job.ID: final}, time.Now())
		if unreachable && g.job.Origin == record.Scheduled {
			h.testAgain(g.job.Pair, time.Now())
		}
		if final.Spent {
			return g.job.Charged
		}
		break
	}
	return 0
}

// remember records which agent of a pair connected.
func (h *Hub) remember(ctx context.Context, key, near string) {
	h.mu.Lock()
	p := h.pairs[key]
	same := p == nil || p.near == near
	if !same {
		p.near = near
	}
	h.mu.Unlock()
	if !same {
		_ = h.Fleet.SetPairNear(ctx, key, near) // the next run tries the other way round again
	}
}

// attempt orders a run one way round and waits for its result. ended is set when its result is stored; otherwise final
// says how the run ended.
func (h *Hub) attempt(ctx context.Context, g *run, task mesh.Task, lead store.Lead, near string, end time.Time) (
	ended bool, final store.End) {
	nearAgent, farAgent, ok := h.membersOf(g, near)
	if !ok {
		return false, store.End{State: mesh.Skipped, Reason: mesh.AgentRemoved}
	}
	order := bus.Order{V: bus.Version, Run: g.job.ID, Lead: leadOf(lead), Key: probe.NewKey().String(),
		Within: admissionTime, Until: time.Until(end), Task: g.job.Task,
		Origin: string(g.job.Origin), PathKey: store.FleetPathKey(g.job.Task, near, g.job.Other(near)),
		Spec: spec(task, g.bytes, nearAgent, farAgent)}
	serve := order
	serve.Role = bus.RoleServe
	serve.Instance = farAgent.hello.Instance
	serve.Far = nearAgent.Name
	serve.From = nearAgent.networks()
	reply, err := h.order(ctx, farAgent.ID, serve)
	switch {
	case err != nil:
		return false, store.End{State: mesh.Failed, Reason: mesh.TimedOut, Detail: farAgent.Name + ": " + err.Error()}
	case reply.Refused != "":
		return false, refused(farAgent, reply)
	}
	test := order
	test.Role = bus.RoleTest
	test.Instance = nearAgent.hello.Instance
	test.Far = farAgent.Name
	test.Peers = farAgent.peers(reply.Port)
	test.Until = time.Until(end)
	if len(test.Peers) == 0 {
		h.Orders.Stop(farAgent.ID, g.job.ID)
		return false, store.End{State: mesh.Failed, Reason: mesh.Unreachable, Detail: farAgent.Name + " has no address"}
	}
	reply, err = h.order(ctx, nearAgent.ID, test)
	if err == nil && reply.Refused != "" {
		h.Orders.Stop(farAgent.ID, g.job.ID)
		return false, refused(nearAgent, reply)
	}
	// Without a reply the order may have arrived: the hosts stay in use until its end.
	timer := time.NewTimer(time.Until(end) + lostAfter)
	defer timer.Stop()
	select {
	case <-g.done:
		return true, final
	case f := <-g.failed:
		h.Orders.Stop(farAgent.ID, g.job.ID)
		return false, store.End{State: mesh.Failed, Reason: f.Reason, Detail: nearAgent.Name + ": " + f.Detail,
			Spent: f.Reason != mesh.Unreachable}
	case <-timer.C:
		return false, store.End{State: mesh.Lost, Reason: mesh.NoResult, Spent: true}
	case <-ctx.Done():
		return true, store.End{State: mesh.Granted} // the next hub waits for its end
	}
}

// membersOf returns the agents of a run as they are now, and false if one was removed. near is the one that tests.
func (h *Hub) membersOf(g *run, near string) (nearAgent, farAgent member, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g.near = near
	a := h.members[near]
	b := h.members[g.job.Other(near)]
	if a == nil || b == nil {
		return member{}, member{}, false
	}
	return *a, *b, true
}

func (h *Hub) order(ctx context.Context, agent string, o bus.Order) (bus.OrderReply, error) {
	ctx, cancel := context.WithTimeout(ctx, orderTime)
	defer cancel()
	reply, err := h.Orders.Order(ctx, agent, o)
	if reply.Lead != nil {
		h.returned(agent, *reply.Lead)
	}
	return reply, err
}

func refused(a member, reply bus.OrderReply) store.End {
	reason := reply.Refused
	if !slices.Contains(mesh.Reasons(mesh.Refused), reason) {
		reason = mesh.Busy // an agent of a newer version
	}
	return store.End{State: mesh.Refused, Reason: reason, Detail: a.Name + ": " + oneLine(reply.Detail)}
}

// spec returns the size of a run's transfers: at most bytes of each direction, narrowed by both agents' own limits.
func spec(task mesh.Task, bytes int64, agents ...member) bus.Spec {
	s := bus.Spec{Time: time.Duration(task.Time), Bytes: bytes, Streams: task.Streams, Congestion: task.Congestion}
	for _, a := range agents {
		if limit := a.hello.Limits.TimeNs; limit > 0 {
			s.Time = min(s.Time, limit)
		}
		if limit := a.hello.Limits.RateBps; limit > 0 && (s.Bps == 0 || limit < s.Bps) {
			s.Bps = limit
		}
	}
	return s
}

// adopt waits for the end of a run that another hub ordered. mu is locked.
func (h *Hub) adopt(ctx context.Context, j store.Job, needs []mesh.Resource) {
	g := &run{job: j, needs: needs, near: j.Near, failed: make(chan bus.Failed, 1), done: make(chan struct{})}
	h.runs[j.ID] = g
	h.work.Go(func() {
		timer := time.NewTimer(time.Until(j.Until) + lostAfter)
		defer timer.Stop()
		final := store.End{State: mesh.Lost, Reason: mesh.NoResult, Spent: true}
		ended := false
		moved := j.Charged
		select {
		case <-g.done:
			ended = true
			moved = g.moved
		case f := <-g.failed:
			final = store.End{State: mesh.Failed, Reason: f.Reason, Detail: f.Detail, Spent: f.Reason != mesh.Unreachable}
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		if !final.Spent {
			moved = 0
		}
		if !ended {
			h.finish(ctx, map[string]store.End{j.ID: final}, time.Now())
		}
		h.free(j.ID, moved)
	})
}

// addresses returns the addresses of an agent's host: its own, and the one that the hub sees, which a NAT has made.
func (m member) addresses() []netip.Addr {
	own := m.hello.Addresses[:min(len(m.hello.Addresses), bus.MaxAddresses-1)]
	if !m.seenFrom.IsValid() || m.seenFrom.IsLoopback() || slices.Contains(own, m.seenFrom) {
		return own
	}
	return append(slices.Clone(own), m.seenFrom)
}

// peers returns the addresses at which others may reach an agent.
func (m member) peers(port int) (all []netip.AddrPort) {
	if port <= 0 || port > 65535 {
		return nil
	}
	for _, a := range m.addresses() {
		all = append(all, netip.AddrPortFrom(a, uint16(port)))
	}
	return all
}

// networks returns the addresses from which an agent's connections may come.
func (m member) networks() (all []netip.Prefix) {
	for _, a := range m.addresses() {
		all = append(all, netip.PrefixFrom(a, a.BitLen()))
	}
	return all
}

// names returns the names of a job's agents.
func (h *Hub) names(j store.Job) (names [2]string) {
	for i, id := range []string{j.A, j.B} {
		names[i] = id
		if m := h.members[id]; m != nil {
			names[i] = m.Name
		}
	}
	return names
}
