package hub

import (
	"context"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
)

// charges returns what the runs of the last day took of the budgets, if the book does not know it: after the hub began
// to lead, or with a budget that is new in the mesh file.
func (h *Hub) charges(ctx context.Context, m *mesh.Mesh, plan *mesh.Plan, now time.Time) (all []mesh.Charge,
	err error) {
	h.mu.Lock()
	lacks := h.book.Lacks(plan.Budgets)
	h.mu.Unlock()
	if !lacks {
		return nil, nil
	}
	charges, err := h.Fleet.Charges(ctx, now.Add(-24*time.Hour), now.Add(24*time.Hour))
	for _, c := range charges {
		if c.At.After(now) {
			c.At = now // the clock was set back
		}
		all = append(all, mesh.Charge{At: c.At, Needs: h.needsOf(m, c.A, c.B), Bytes: c.Bytes})
	}
	return all, err
}

// needsOf returns the hosts and links of a run between two agents, of a removed one the host only.
func (h *Hub) needsOf(m *mesh.Mesh, a, b string) []mesh.Resource {
	first := h.members[a]
	second := h.members[b]
	if first == nil || second == nil {
		return []mesh.Resource{mesh.HostResource(a), mesh.HostResource(b)}
	}
	return m.Needs(first.hello.Agent(a, first.Name, first.Labels), second.hello.Agent(b, second.Name, second.Labels))
}

// directionBytes returns the greatest payload of a direction of a run: half of its reservation, or as its task says
// where no host or link has a budget. mu is locked.
func (h *Hub) directionBytes(task mesh.Task, reserved int64, needs []mesh.Resource) int64 {
	if slices.ContainsFunc(needs, func(r mesh.Resource) bool { return h.budgets[r].Bytes > 0 }) {
		return max(reserved/2, 1)
	}
	return int64(task.Most)
}
