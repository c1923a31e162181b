package hub

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

const year = 365 * 24 * time.Hour

// errorsOf collects the errors of a hub.
type errorsOf struct {
	mu  sync.Mutex
	all []string
}

func (e *errorsOf) add(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event.Detail)
}

// ofCopies returns the number of errors about copies, and fails for another one.
func (e *errorsOf) ofCopies(t *testing.T) (n int) {
	t.Helper()
	for _, text := range e.all {
		if !strings.Contains(text, "another copy of this database") {
			t.Errorf("hub: %s", text)
		}
		n++
	}
	return n
}

// reconnect lets all agents say hello to a hub, as after a connect.
func (w *world) reconnect(h *Hub) {
	for _, a := range w.agents {
		w.mu.Lock()
		hello := bus.Hello{V: bus.Version, Lead: a.lead}
		w.mu.Unlock()
		if last, known := lastHello(h, a.id); known {
			hello.Addresses, hello.Port = last.Addresses, last.Port
		}
		welcome := h.Hello(w.ctx, a.id, hello)
		w.mu.Lock()
		if welcome.Epoch != 0 {
			a.lead = welcome.Lead
		}
		w.mu.Unlock()
	}
}

func lastHello(h *Hub, id string) (hello bus.Hello, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.members[id]; m != nil {
		return m.hello, true
	}
	return hello, false
}

// cutAll sets whether the agents reach no hub.
func (w *world) cutAll(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.agents {
		a.cut = cut
	}
}

// results returns the number of documents that the agents have made.
func (w *world) results() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.made)
}

// TestCopies_Restored leads a fleet with a hub, copies its database, leads on with hubs that are killed, and then with
// one on the copy. The fleet goes on whatever the clock says, and the operator hears of the copy where the agents know
// that it is one.
func TestCopies_Restored(t *testing.T) {
	for _, c := range []struct {
		name    string
		ahead   time.Duration // of the first hub's clock
		raw     bool          // the files are copied, not fullpipe-hub backup
		hello   bool          // agents connect again, as to a hub with its own bus
		stale   int           // refused orders at most
		reports bool
	}{
		{name: "backup", hello: true, reports: true},
		{name: "backup, the clock was set back", ahead: year, hello: true, reports: true},
		{name: "backup on a NATS server of the user's"},
		{name: "backup on a NATS server of the user's, the clock was set back", ahead: year, stale: 4, reports: true},
		{name: "copied files", raw: true, hello: true},
		{name: "copied files, the clock was set back", raw: true, ahead: year, hello: true, reports: true},
		{name: "copied files on a NATS server of the user's, the clock was set back", raw: true, ahead: year, stale: 4,
			reports: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			copied := t.TempDir()
			leads := map[string]bus.Lead{}
			synctest.Test(t, func(t *testing.T) { leads = leadAndCopy(t, c.ahead, c.raw, copied) })
			synctest.Test(t, func(t *testing.T) {
				if c.ahead == 0 {
					time.Sleep(time.Hour) // the virtual clock has begun anew
				}
				w := worldOn(t, copied, leads)
				var errors errorsOf
				w.cutAll(c.hello)
				w.run(t, func() {
					defer w.startHubOn(w.fleet, errors.add)()
					time.Sleep(time.Second)
					if c.hello {
						w.reconnect(w.hubs[0])
					}
					w.cutAll(false)
					time.Sleep(time.Hour)
				})()
				if n := w.results(); n < 8 { // 24 in the mean
					t.Errorf("%d results in an hour: the fleet makes no tests", n)
				}
				if w.stale > c.stale {
					t.Errorf("%d orders were stale", w.stale)
				}
				if n := errors.ofCopies(t); (n == 1) != c.reports {
					t.Errorf("%d reports of a copy: %q", n, errors.all)
				}
			})
		})
	}
}

// leadAndCopy leads a fleet, copies its database, and leads on. It returns the leads that the agents follow then.
func leadAndCopy(t *testing.T, ahead time.Duration, raw bool, copied string) map[string]bus.Lead {
	t.Helper()
	time.Sleep(ahead)
	dir := t.TempDir()
	w := newWorldIn(t, dir, 4, 1)
	w.run(t, func() {
		kill := w.startHub()
		time.Sleep(time.Minute)
		w.reconnect(w.hubs[0])
		time.Sleep(5 * time.Minute)
		kill() // it may have the lead for a minute, and runs in progress
		if raw {
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
		} else if err := w.fleet.Backup(t.Context(), filepath.Join(copied, "history.db")); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			kill := w.startHub()
			time.Sleep(2 * time.Minute)
			w.reconnect(w.hubs[0])
			kill()
		}
	})()
	leads := map[string]bus.Lead{}
	for id, a := range w.agents {
		leads[id] = a.lead
	}
	return leads
}

// worldOn returns a world on a database that has its agents.
func worldOn(t *testing.T, dir string, leads map[string]bus.Lead) *world {
	t.Helper()
	fleet, err := store.OpenFleet(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, rng: newRand(1), fleet: fleet, agents: map[string]*simAgent{}, made: map[string]bool{},
		serving: map[string]string{}}
	for id, lead := range leads {
		w.agents[id] = &simAgent{id: id, outbox: map[string][]byte{}, lead: lead}
	}
	return w
}

// run runs a function while the agents live. end waits for them and closes the database.
func (w *world) run(t *testing.T, do func()) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	w.ctx = ctx
	for _, a := range w.agents {
		w.work.Go(func() { w.live(a) })
	}
	do()
	return func() {
		cancel()
		w.work.Wait()
		if err := w.fleet.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCopies_TwoHubs runs two hubs on copies of one database at the same time. Agents that move between them follow one
// at a time, and each hub reports the other. On one bus the hub that came later does not take the agents of the first.
func TestCopies_TwoHubs(t *testing.T) {
	for _, raw := range []bool{false, true} {
		copied := t.TempDir()
		leads := map[string]bus.Lead{}
		synctest.Test(t, func(t *testing.T) { leads = leadAndCopy(t, 0, raw, copied) })
		other := t.TempDir()
		if err := os.CopyFS(other, os.DirFS(copied)); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			w := worldOn(t, copied, leads)
			second, err := store.OpenFleet(t.Context(), other, "")
			if err != nil {
				t.Fatal(err)
			}
			defer second.Close()
			var errors [2]errorsOf
			w.run(t, func() {
				defer w.startHubOn(w.fleet, errors[0].add)()
				time.Sleep(10 * time.Second)
				w.reconnect(w.hubs[0])
				defer w.startHubOn(second, errors[1].add)()
				time.Sleep(10 * time.Second)
				// They are on one bus now. The second leads, and its orders are of a later epoch.
				for range 3 {
					for _, h := range w.hubs {
						w.reconnect(h)
						time.Sleep(10 * time.Second)
					}
				}
				followed := map[string]bool{}
				for _, a := range w.agents {
					followed[a.lead.Database] = true
				}
				if len(followed) != 1 {
					t.Errorf("copied files %v: the agents follow %d hubs", raw, len(followed))
				}
			})()
			if errors[0].ofCopies(t)+errors[1].ofCopies(t) == 0 {
				t.Errorf("copied files %v: two hubs lead and none reports it", raw)
			}
		})
	}
}
