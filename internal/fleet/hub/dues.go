package hub

import (
	"container/heap"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// dueQueue has the times at which pairs are due, the earliest first. A pair may have several; the caller checks that
// one is still current.
type dueQueue struct{ entries dueEntries }

type dueEntry struct {
	at   time.Time
	pair string
}

type dueEntries []dueEntry

func (e dueEntries) Len() int           { return len(e) }
func (e dueEntries) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e dueEntries) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *dueEntries) Push(x any)        { *e = append(*e, x.(dueEntry)) }
func (e *dueEntries) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (q *dueQueue) add(at time.Time, pair string) { heap.Push(&q.entries, dueEntry{at, pair}) }

// first returns the earliest entry, and false in an empty queue.
func (q *dueQueue) first() (at time.Time, pair string, ok bool) {
	if len(q.entries) == 0 {
		return at, "", false
	}
	return q.entries[0].at, q.entries[0].pair, true
}

// remove removes the earliest entry.
func (q *dueQueue) remove() { heap.Pop(&q.entries) }

// quieted takes the waiting runs out of the book whose task has quiet hours now, except those that
// a user asked for, and returns how they end.
func (h *Hub) quieted(now time.Time) map[string]store.End {
	h.mu.Lock()
	defer h.mu.Unlock()
	quiet := map[string]bool{} // by task
	for task, hours := range h.quiet {
		quiet[task] = hours.Quiet(now)
	}
	ends := map[string]store.End{}
	for _, r := range h.book.Remove(func(r mesh.Run) bool {
		return quiet[h.jobs[r.ID].Task] && h.jobs[r.ID].Origin != record.Manual
	}) {
		ends[r.ID] = store.End{State: mesh.Skipped, Reason: mesh.QuietHours, Detail: "of task " + h.jobs[r.ID].Task}
	}
	return ends
}

// due makes jobs of the pairs whose time has come.
func (h *Hub) due(ctx context.Context, now time.Time) error {
	jobs, nexts := h.takeDue(now)
	if len(nexts) == 0 && len(jobs) == 0 {
		return nil
	}
	err := h.Fleet.Due(ctx, h.lead, jobs, nexts)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.renewAt = now // the lead may have gone to another hub
		h.dueAgain(jobs, nexts, now)
		return err
	}
	for _, j := range jobs {
		h.await(j, h.pairs[j.Pair].Needs)
	}
	return nil
}

// dueAgain makes pairs due at once whose jobs the database did not take. mu is locked.
func (h *Hub) dueAgain(jobs []store.Job, nexts map[string]time.Time, now time.Time) {
	for key := range nexts {
		h.pairs[key].next = now
		h.dues.add(now, key)
	}
	for _, j := range jobs {
		if j.Origin == record.Retest {
			h.pairs[j.Pair].test = now
			h.dues.add(now, j.Pair)
		}
	}
}

// takeDue returns a job for each pair whose time has come, and when these pairs are due next.
func (h *Hub) takeDue(now time.Time) (jobs []store.Job, nexts map[string]time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	nexts = map[string]time.Time{}
	for {
		at, key, ok := h.dues.first()
		if !ok || at.After(now) {
			return jobs, nexts
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
		waits := p.Every / 4
		if origin == record.Retest {
			waits = min(waits, incident.Settle) // nobody waits for it longer
		}
		jobs = append(jobs, store.Job{ID: newID(now), Pair: key, Task: p.Task, A: p.A, B: p.B, Origin: origin, Due: now,
			Late: now.Add(waits), State: mesh.Due})
	}
}

// testAgain tests a pair again soon that has had a connection before: a host that starts again is not unreachable.
func (h *Hub) testAgain(key string, now time.Time) {
	h.mu.Lock()
	p := h.pairs[key]
	known := p != nil && p.near != ""
	h.mu.Unlock()
	if known {
		h.setTest(key, now.Add(changepoint.Soon))
	}
}

// Request makes a job that a user asks for, of the first task of a pair of agents. Any process may do so.
func Request(ctx context.Context, f *store.Fleet, a, b string, now time.Time, waits time.Duration) (store.Job, error) {
	text, _, err := f.Mesh(ctx)
	if err != nil {
		return store.Job{}, err
	}
	task := "throughput"
	if m, err := mesh.Parse([]byte(text)); err == nil && len(m.Tasks) > 0 {
		task = slices.Min(slices.Collect(maps.Keys(m.Tasks)))
	}
	if b < a {
		a, b = b, a
	}
	job := store.Job{ID: newID(now), Task: task, A: a, B: b, Origin: record.Manual, Due: now, Late: now.Add(waits)}
	job.Pair = mesh.Pair{Task: task, A: a, B: b}.Key()
	return job, f.Request(ctx, job)
}
