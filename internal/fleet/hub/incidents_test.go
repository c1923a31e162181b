package hub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// receiver takes notices, unless it is away.
type receiver struct {
	mu    sync.Mutex
	away  bool
	taken map[string]string // cause and change, by ID
	sent  int
	then  func() // after one was taken
}

func (r *receiver) take(_ context.Context, n store.Notice, _ mesh.Alert) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away {
		return errors.New("connection refused")
	}
	r.sent++
	r.taken[n.ID] = fmt.Sprintf("%s %s %s", n.Change, n.Incident.Cause.Kind.Noun(), n.Names[n.Incident.Cause.ID])
	if r.then != nil {
		r.then()
	}
	return nil
}

func (r *receiver) reports() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Values(r.taken))
}

// incidentWorld is a fleet of four hosts whose paths have a past, and a hub that can be killed.
type incidentWorld struct {
	*world
	hub    *Hub
	ctx    context.Context
	cancel context.CancelFunc
	to     *receiver
}

func newIncidentWorld(t *testing.T) *incidentWorld {
	t.Helper()
	w := &incidentWorld{world: newWorld(t, 4, 1), to: &receiver{taken: map[string]string{}}}
	w.start()
	for range 13 {
		for _, p := range w.hub.pairs {
			w.measure(p.Pair, 1e8, record.Scheduled)
		}
	}
	w.pass(0)
	return w
}

// start starts a hub, which leads.
func (w *incidentWorld) start() {
	w.t.Helper()
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.hub = New(Config{Fleet: w.fleet, Orders: w.world, Lease: time.Minute, Send: w.to.take,
		Receivers: map[string]mesh.Alert{"--webhook": {}}})
	for w.hub.renew(w.ctx, time.Now()) == nil && !w.hub.leading {
		time.Sleep(10 * time.Second)
	}
	if !w.hub.leading {
		w.t.Fatal("the hub does not lead")
	}
}

// kill ends the hub as kill -9 does, and starts another.
func (w *incidentWorld) kill() {
	w.cancel()
	w.hub.work.Wait()
	w.start()
}

// measure stores a result of a pair, both directions.
func (w *incidentWorld) measure(p mesh.Pair, bps float64, origin record.Origin) {
	w.t.Helper()
	now := time.Now()
	w.alive(now)
	job := store.Job{ID: newID(now), Pair: p.Key(), Task: p.Task, A: p.A, B: p.B, Origin: origin, Due: now,
		Late: now.Add(time.Hour)}
	err := w.fleet.Due(w.ctx, w.hub.lead, []store.Job{job},
		map[string]time.Time{job.Pair: now.Add(24 * time.Hour)})
	_, granted := w.fleet.Grant(w.ctx, w.hub.lead, now, store.Grant{ID: job.ID, Near: p.A, Lasts: time.Minute})
	if err := errors.Join(err, granted); err != nil {
		w.t.Fatal(err)
	}
	order := bus.Order{Run: job.ID, Origin: string(job.Origin), PathKey: store.FleetPathKey(p.Task, p.A, p.B)}
	if receipt := w.hub.Result(w.ctx, p.A, simDocument(w.t, order, now, bps)); !receipt.Stored {
		w.t.Fatalf("%+v", receipt)
	}
	time.Sleep(12 * time.Second)
}

// alive keeps the lead and all hosts.
func (w *incidentWorld) alive(now time.Time) {
	w.t.Helper()
	if err := w.hub.renew(w.ctx, now); err != nil && w.ctx.Err() == nil {
		w.t.Fatal(err)
	}
	for id := range w.agents {
		w.hub.Here(w.ctx, id, bus.Here{V: bus.Version, ClockNs: now.UnixNano()})
	}
}

// pass judges and sends for a time, at least once.
func (w *incidentWorld) pass(lasts time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(lasts); ; {
		now := time.Now()
		w.alive(now)
		if err := errors.Join(w.hub.judge(w.ctx, now), w.hub.send(w.ctx, now)); err != nil && w.ctx.Err() == nil {
			w.t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		if time.Now().After(end) {
			return
		}
	}
}

// asked measures the pairs that the hub has made due. slow is a host.
func (w *incidentWorld) asked(slow string) (n int) {
	for key, p := range w.hub.pairs {
		if p.test.IsZero() {
			continue
		}
		w.hub.pairs[key].test = time.Time{}
		bps := 1e8
		if p.A == slow || p.B == slow {
			bps = 4e7
		}
		w.measure(p.Pair, bps, record.Retest)
		n++
	}
	return n
}

// TestIncident_KilledHub checks that a fault of a host is reported once when it begins and once when it ends, also if
// the hub is killed at any step, or the receiver is away for an hour.
func TestIncident_KilledHub(t *testing.T) {
	const steps = 6
	for kill := range steps + 3 {
		t.Run(fmt.Sprint("step ", kill), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newIncidentWorld(t)
				defer w.fleet.Close()
				step := 0
				then := func(do func()) {
					do()
					if step == kill {
						w.kill()
					}
					step++
				}
				switch kill {
				case steps: // after the receiver has taken it, before the hub knows
					w.to.then = func() { w.cancel(); w.to.then = nil }
				case steps + 1:
					w.to.away = true
				}
				var first *pair
				for _, p := range w.hub.pairs {
					if p.A == "id2" || p.B == "id2" {
						first = p
					}
				}
				then(func() { // a dip of one path
					w.measure(first.Pair, 4e7, record.Scheduled)
					for range 5 {
						time.Sleep(3 * time.Minute)
						w.measure(first.Pair, 4e7, record.Retest)
					}
				})
				then(func() { w.pass(0) })
				if kill == 1 {
					w.pass(0) // the next hub
				}
				if got := w.to.reports(); len(got) > 0 {
					t.Fatalf("reported before the paths next to it were tested: %q", got)
				}
				if n := w.waiting(); n < 2 {
					t.Errorf("%d pairs are asked for", n)
				}
				then(func() { w.asked("id2") })
				then(func() { w.pass(0) })
				then(func() { w.pass(time.Minute) })
				if kill == steps {
					w.kill()
				}
				then(func() { // the fault is over
					for _, p := range w.hub.pairs {
						if p.A == "id2" || p.B == "id2" {
							w.measure(p.Pair, 1e8, record.Retest)
						}
					}
				})
				w.pass(time.Minute)
				if kill == steps+1 {
					w.pass(time.Hour)
					if got := w.to.reports(); len(got) > 0 {
						t.Fatalf("%q", got)
					}
					w.to.away = false
					w.pass(maxPause)
				}
				w.hub.work.Wait()
				if got := w.to.reports(); !slices.Equal(got, []string{"opened host a2", "resolved host a2"}) {
					t.Errorf("reports %q", got)
				}
				if left, err := w.fleet.Notices(t.Context()); err != nil || len(left) > 0 {
					t.Errorf("%v wait, %v", left, err)
				}
				incidents, err := w.fleet.Incidents(t.Context(), time.Time{})
				if err != nil || len(incidents) != 1 || incidents[0].Open() || incidents[0].Cause.Kind != incident.OneHost {
					t.Errorf("%+v, %v", incidents, err)
				}
			})
		})
	}
}

// waiting returns how many pairs are due.
func (w *incidentWorld) waiting() (n int) {
	for _, p := range w.hub.pairs {
		if !p.test.IsZero() {
			n++
		}
	}
	return n
}

// TestIncident_AwayHost checks that a host that is away is an incident, not one that starts again.
func TestIncident_AwayHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newIncidentWorld(t)
		defer w.fleet.Close()
		gone := w.agents["id1"]
		delete(w.agents, "id1")
		w.pass(3 * time.Minute)
		w.agents["id1"] = gone
		w.pass(time.Minute)
		if got := w.to.reports(); len(got) > 0 {
			t.Errorf("reports of an upgrade: %q", got)
		}
		delete(w.agents, "id1")
		w.pass(7 * time.Minute)
		w.kill()
		w.pass(6 * time.Minute)
		w.agents["id1"] = gone
		w.pass(time.Minute)
		w.hub.work.Wait()
		if got := w.to.reports(); !slices.Equal(got, []string{"opened host a1", "resolved host a1"}) {
			t.Errorf("reports %q", got)
		}
	})
}

// TestIncident_IdleHub checks that a hub, with receivers or without, takes a step only when something is due.
func TestIncident_IdleHub(t *testing.T) {
	for name, send := range map[string]func(context.Context, store.Notice, mesh.Alert) error{"no receivers": nil,
		"a receiver": (&receiver{taken: map[string]string{}}).take, "a receiver that is away": (&receiver{away: true}).take} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2, 1)
				defer w.fleet.Close()
				h := New(Config{Fleet: w.fleet, Orders: w, Lease: time.Minute, Send: send,
					Receivers: map[string]mesh.Alert{"--webhook": {}}})
				const lasts = time.Hour // the hosts are away: both are an incident
				steps := 0
				for end := time.Now().Add(lasts); time.Now().Before(end); steps++ {
					now := time.Now()
					next, err := h.step(t.Context(), now)
					if err != nil {
						t.Fatal(err)
					}
					if steps > int(2*lasts/refreshEvery) {
						t.Fatalf("%d steps in %s", steps, time.Until(end))
					}
					time.Sleep(max(next.Sub(now), 0))
				}
				h.work.Wait()
				if incidents, err := w.fleet.Incidents(t.Context(), time.Time{}); err != nil || len(incidents) == 0 {
					t.Errorf("%v, %v", incidents, err)
				}
			})
		})
	}
}
