package hub

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// TestBudgets_HoldOverHubRestarts kills the hub again and again, also during runs, while users ask for far more tests
// than a link's or a host's budget allows. The burst of a fifth is there once, not for each hub.
func TestBudgets_HoldOverHubRestarts(t *testing.T) {
	for _, c := range []struct {
		name, mesh     string
		budget         float64
		every, restart time.Duration
	}{
		{"link", "[link.wan]\nday-bytes = \"1GB\"\n", 1e9, 5 * time.Minute, 20 * time.Minute},
		{"host", "[link.wan]\n[limits]\nday-bytes = \"3GB\"\n", 3e9, 2 * time.Minute, 7 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const lasts = 2 * time.Hour
				moved := float64(restartHubs(t, c.mesh, c.every, c.restart, lasts))
				allowed := c.budget * (0.2 + 0.8*lasts.Hours()/24)
				if moved > allowed || moved < allowed/2 {
					t.Errorf("%v moved %.0f bytes, want at most and nearly %.0f", lasts, moved, allowed)
				}
			})
		})
	}
}

// restartHubs lets two agents at the ends of a link be tested, and returns the payload of all runs by the agents' own
// account.
func restartHubs(t *testing.T, links string, every, restart, lasts time.Duration) (moved int64) {
	w := newWorld(t, 2, 7)
	defer w.fleet.Close()
	ctx, end := context.WithCancel(context.Background())
	w.ctx = ctx
	text := "[site.x]\nagents = [\"a0\"]\nuplink = \"wan\"\n" + links +
		"[task.t]\nbetween = [\"*\"]\nevery = \"24h\"\ntime = \"5s\"\nmost = \"50MB\"\n"
	if _, err := w.fleet.SetMesh(ctx, text, "test", time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, a := range w.agents {
		w.work.Go(func() { w.live(a) })
	}
	kill := w.startHub()
	restartAt := time.Now().Add(restart)
	for began := time.Now(); time.Since(began) < lasts; {
		if _, err := Request(ctx, w.fleet, "id0", "id1", time.Now(), every); err != nil {
			t.Fatal(err)
		}
		time.Sleep(every - time.Duration(w.random(20))*time.Second)
		if time.Now().After(restartAt) {
			kill()
			time.Sleep(time.Duration(w.random(30)) * time.Second)
			kill = w.startHub()
			restartAt = time.Now().Add(restart)
		}
	}
	kill()
	end()
	w.work.Wait()
	for _, a := range w.agents {
		moved += int64(len(a.log)) * 100e6 // as near end
	}
	return moved
}

// TestBudgets_ChargeOfEachEnd checks which runs stay charged: those that moved payload, or may have.
func TestBudgets_ChargeOfEachEnd(t *testing.T) {
	w := newWorld(t, 2, 1)
	defer w.fleet.Close()
	begin := time.Now().Truncate(time.Second)
	lead, err := w.fleet.TakeLead(t.Context(), "one", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{}
	for i, c := range []struct {
		end     store.End
		charged int64
	}{
		{store.End{State: mesh.Failed, Reason: mesh.Unreachable}, 0},
		{store.End{State: mesh.Refused, Reason: mesh.Busy}, 0},
		{store.End{State: mesh.Failed, Reason: mesh.FarError, Spent: true}, 700},
		{store.End{State: mesh.Lost, Reason: mesh.NoResult, Spent: true}, 700},
	} {
		at := begin.Add(time.Duration(i) * time.Minute)
		job := store.Job{ID: newID(at), Pair: fmt.Sprint("p", i), Task: "t", A: "id0", B: "id1", Origin: record.Scheduled,
			Due: at, Late: at.Add(time.Minute)}
		if err := w.fleet.Due(t.Context(), lead, []store.Job{job}, nil); err != nil {
			t.Fatal(err)
		}
		grant := store.Grant{ID: job.ID, Near: "id0", Lasts: time.Minute, Bytes: 700}
		if _, err := w.fleet.Grant(t.Context(), lead, at, grant); err != nil {
			t.Fatal(err)
		}
		open, err := w.fleet.Job(t.Context(), job.ID)
		if err != nil || open.Charged != 700 {
			t.Errorf("a granted run is charged %d bytes, %v", open.Charged, err)
		}
		if err := w.fleet.Finish(t.Context(), map[string]store.End{job.ID: c.end}, at); err != nil {
			t.Fatal(err)
		}
		if c.charged > 0 {
			want[at.UTC().String()] = c.charged
		}
	}
	charges, err := w.fleet.Charges(t.Context(), begin, begin.Add(time.Hour))
	if err != nil || len(charges) != len(want) {
		t.Errorf("%+v, %v, want %v", charges, err, want)
	}
	for _, c := range charges {
		if c.Bytes != want[c.At.String()] || c.A != "id0" || c.B != "id1" {
			t.Errorf("%+v, want %v", c, want)
		}
	}
	late, err := w.fleet.Charges(t.Context(), begin.Add(time.Hour), begin.Add(24*time.Hour))
	if err != nil || len(late) > 0 {
		t.Errorf("charges of later: %+v, %v", late, err)
	}
}
