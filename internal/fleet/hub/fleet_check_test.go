package hub

import (
	"context"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// check compares what the agents made with what the hub stored.
func (w *world) check(minDone int) {
	w.t.Helper()
	ctx := context.Background()
	jobs, err := w.fleet.Jobs(ctx, store.JobFilter{Limit: 100000})
	if err != nil {
		w.t.Fatal(err)
	}
	states := map[string]int{}
	for _, j := range jobs {
		states[string(j.State)+" "+string(j.Reason)]++
		if w.made[j.ID] && j.State != mesh.Done {
			w.t.Errorf("%s was measured and has ended as %s %s", j.ID, j.State, j.Reason)
		}
		if j.State == mesh.Done && !w.made[j.ID] {
			w.t.Errorf("%s is done and nobody measured it", j.ID)
		}
		if !j.State.Final() {
			w.t.Errorf("%s of %v is still %s", j.ID, j.Due, j.State)
		}
		if j.State.Final() && j.State != mesh.Done && !slices.Contains(mesh.Reasons(j.State), j.Reason) {
			w.t.Errorf("%s has ended as %s with reason %q", j.ID, j.State, j.Reason)
		}
	}
	runs, err := w.fleet.Store().List(ctx, store.Filter{})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(runs) != len(w.made) || len(runs) < minDone {
		w.t.Errorf("%d runs are stored, %d were made, want at least %d", len(runs), len(w.made), minDone)
	}
	w.t.Logf("%d jobs, %d made, %d stored: %v", len(jobs), len(w.made), len(runs), states)
	w.checkOverlaps()
}

// checkOverlaps fails where two runs met on a host, or on the uplink of a0 and a1.
func (w *world) checkOverlaps() {
	w.t.Helper()
	by := map[string][]occupied{}
	onUplink := func(id string) bool { return id == "id0" || id == "id1" }
	for _, a := range w.agents {
		for _, o := range a.log {
			by[a.id] = append(by[a.id], o)
			by[o.far] = append(by[o.far], o)
			if onUplink(a.id) != onUplink(o.far) {
				by["wan"] = append(by["wan"], o)
			}
		}
	}
	for resource, all := range by {
		slices.SortFunc(all, func(a, b occupied) int { return a.from.Compare(b.from) })
		for i := 1; i < len(all); i++ {
			if all[i].from.Before(all[i-1].to) {
				w.t.Errorf("%s: %s and %s met at %v", resource, all[i-1].run, all[i].run, all[i].from)
			}
		}
	}
}
