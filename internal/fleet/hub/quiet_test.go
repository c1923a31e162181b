package hub

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// TestQuietHours_NoWaitingRunStarts lets runs wait for a host until quiet hours begin: they are
// skipped with the reason, and the one that a user asked for starts.
func TestQuietHours_NoWaitingRunStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3, 1)
		defer w.fleet.Close()
		ctx, end := context.WithCancel(context.Background())
		w.ctx = ctx
		const text = "[task.t]\nbetween = [\"*\"]\nevery = \"20h\"\nquiet-hours = \"01:00-03:00\"\nzone = \"UTC\"\n"
		if _, err := w.fleet.SetMesh(ctx, text, "test", time.Now()); err != nil {
			t.Fatal(err)
		}
		for _, a := range w.agents {
			w.work.Go(func() { w.live(a) })
		}
		kill := w.startHub()
		midnight := time.Now().UTC().Truncate(24 * time.Hour)
		time.Sleep(time.Until(midnight.Add(50 * time.Minute)))
		w.mu.Lock()
		w.agents["id0"].cut = true
		w.mu.Unlock()
		time.Sleep(5 * time.Minute)
		want := map[string]store.End{}
		for b, origin := range map[string]record.Origin{"id1": record.Scheduled, "id2": record.Manual} {
			now := time.Now()
			job := store.Job{ID: newID(now), Pair: mesh.Pair{Task: "t", A: "id0", B: b}.Key(), Task: "t", A: "id0", B: b,
				Origin: origin, Due: now, Late: now.Add(30 * time.Minute)}
			if err := w.fleet.Request(ctx, job); err != nil {
				t.Fatal(err)
			}
			want[job.ID] = store.End{State: mesh.Done}
			if origin == record.Scheduled {
				want[job.ID] = store.End{State: mesh.Skipped, Reason: mesh.QuietHours}
			}
		}
		time.Sleep(time.Until(midnight.Add(62 * time.Minute)))
		w.mend(w.agents["id0"])
		time.Sleep(5 * time.Minute)
		for id, end := range want {
			job, err := w.fleet.Job(ctx, id)
			if err != nil || job.State != end.State || job.Reason != end.Reason {
				t.Errorf("a %s run that waits into quiet hours: %s %s, %v, want %s %s", job.Origin, job.State, job.Reason, err,
					end.State, end.Reason)
			}
		}
		kill()
		end()
		w.work.Wait()
	})
}
