package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// someGranted returns a fleet's granted runs from a to b.
func someGranted(t *testing.T, f *Fleet, n int) (ids []string) {
	t.Helper()
	lead, err := f.TakeLead(t.Context(), "one", time.Hour)
	must.Do(t, err)
	var jobs []Job
	var grants []Grant
	for i := range n {
		var random [10]byte
		binary.BigEndian.PutUint64(random[:], uint64(i))
		id := record.NewID(begin, random)
		ids = append(ids, id)
		jobs = append(jobs, Job{ID: id, Pair: "t a b", Task: "t", A: "a", B: "b", Origin: record.Scheduled, Due: begin,
			Late: begin.Add(time.Minute)})
		grants = append(grants, Grant{ID: id, Near: "a", Lasts: time.Minute})
	}
	must.Do(t, f.Due(t.Context(), lead, jobs, nil))
	_, err = f.Grant(t.Context(), lead, begin, grants...)
	must.Do(t, err)
	return ids
}

// TestFleet_ResultsTogether delivers results from many goroutines, each twice, among others that were not ordered. Each
// is stored once, and the others are refused.
func TestFleet_ResultsTogether(t *testing.T) {
	bothFleets(t, func(t *testing.T, at func() *Fleet) {
		const runs = 300
		f := at()
		ids := someGranted(t, f, runs)
		var work sync.WaitGroup
		for i, id := range ids {
			doc := fleetDocument(t, id, begin, 1e8, 1e8)
			foreign := fleetDocument(t, record.NewID(begin, [10]byte{9: byte(i), 8: byte(i >> 8), 0: 1}), begin, 1e8, 1e8)
			for range 2 {
				work.Go(func() {
					if job, err := f.AddResult(t.Context(), "a", doc, begin); err != nil || job.State != mesh.Done || job.ID != id {
						t.Errorf("%s: %+v, %v", id, job, err)
					}
				})
				work.Go(func() {
					if _, err := f.AddResult(t.Context(), "a", foreign, begin); !errors.Is(err, ErrNotAsked) {
						t.Errorf("a run that was not ordered: %v", err)
					}
				})
			}
		}
		work.Wait()
		stored, err := f.Store().List(t.Context(), Filter{})
		if err != nil || len(stored) != runs {
			t.Errorf("%d are stored, want %d, %v", len(stored), runs, err)
		}
		f.writes.mu.Lock()
		waiting := len(f.writes.waiting)
		f.writes.mu.Unlock()
		if waiting != 0 {
			t.Errorf("%d wait", waiting)
		}
	})
}

// TestFleet_OneSpoilsNoOther puts a result that the database rejects among others: they are stored.
func TestFleet_OneSpoilsNoOther(t *testing.T) {
	bothFleets(t, func(t *testing.T, at func() *Fleet) {
		const rejected = 2
		f := at()
		_, err := f.s.db.ExecContext(t.Context(), "CREATE UNIQUE INDEX once ON path_last(run) WHERE limiter = 'once'")
		must.Do(t, err)
		var batch []*write
		ids := someGranted(t, f, 5)
		for i, id := range ids {
			e, err := read(fleetDocument(t, id, begin, 1e8, 1e8))
			must.Do(t, err)
			if i == rejected { // both directions have the limiter
				for k := range e.sum.Figures {
					e.sum.Figures[k].Limiter = "once"
				}
			}
			r := &result{e, "a", pack(nil), begin}
			batch = append(batch, &write{ctx: t.Context(), done: make(chan struct{}),
				do: func(ctx context.Context, tx *sql.Tx) (Job, error) { return f.addResult(ctx, tx, r) }})
		}
		f.makeAll(batch)
		for i, w := range batch {
			<-w.done
			job, err := f.Job(t.Context(), ids[i])
			must.Do(t, err)
			if (w.err != nil) != (i == rejected) || (job.State == mesh.Done) != (i != rejected) {
				t.Errorf("result %d: %v, its run is %s", i, w.err, job.State)
			}
		}
	})
}

// TestFleet_DropsWritesOfGoneCallers checks that a result whose caller has gone waits no longer, and is not stored by a
// transaction that fails for others.
func TestFleet_DropsWritesOfGoneCallers(t *testing.T) {
	bothFleets(t, func(t *testing.T, at func() *Fleet) {
		f := at()
		ids := someGranted(t, f, 3)
		f.writes.mu.Lock()
		f.writes.committing = true // a transaction that does not end
		f.writes.mu.Unlock()
		var work sync.WaitGroup
		ctx, leave := context.WithCancel(t.Context())
		for _, id := range ids {
			work.Go(func() {
				_, err := f.AddResult(ctx, "a", fleetDocument(t, id, begin, 1e8, 1e8), begin)
				if !errors.Is(err, context.Canceled) {
					t.Errorf("a caller that left: %v", err)
				}
			})
		}
		leave()
		work.Wait()
		f.writes.mu.Lock()
		if n := len(f.writes.waiting); n != 0 {
			t.Errorf("%d writes of callers that left wait", n)
		}
		f.writes.mu.Unlock()

		made := 0
		batch := []*write{}
		for _, c := range []context.Context{ctx, t.Context(), ctx} {
			batch = append(batch, &write{ctx: c, done: make(chan struct{}),
				do: func(context.Context, *sql.Tx) (job Job, err error) { made++; return job, nil }})
		}
		f.makeAll(batch)
		if made != 1 || batch[1].err != nil || !errors.Is(batch[0].err, context.Canceled) {
			t.Errorf("%d writes were made, %v", made, batch[0].err)
		}
		stored, err := f.Store().List(t.Context(), Filter{})
		if err != nil || len(stored) != 0 {
			t.Errorf("%d are stored, %v", len(stored), err)
		}
	})
}
