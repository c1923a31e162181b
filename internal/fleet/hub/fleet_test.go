package hub

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// world is a fleet of simulated agents on a virtual clock, with faults.
type world struct {
	t     *testing.T
	ctx   context.Context
	rng   *rand.Rand
	fleet *store.Fleet

	mu      sync.Mutex
	hubs    []*Hub // that run; the agents' messages go to any of them
	agents  map[string]*simAgent
	made    map[string]bool // runs whose document was written to an outbox
	serving map[string]string
	stale   int // refused orders
	work    sync.WaitGroup
}

// simAgent is an agent without network and sockets.
type simAgent struct {
	id     string
	down   bool // killed: it replies to nothing, and its run is gone
	cut    bool // cannot reach the hub
	busy   string
	lead   bus.Lead // that it follows
	log    []occupied
	outbox map[string][]byte
	life   int // raised when it is killed
}

// occupied is a run on a host, by the agent's own log.
type occupied struct {
	run      string
	from, to time.Time
	far      string
}

var errNoReply = errors.New("no reply")

// Order implements Orders.
func (w *world) Order(ctx context.Context, id string, o bus.Order) (bus.OrderReply, error) {
	time.Sleep(time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.agents[id]
	if a.down || a.cut {
		return bus.OrderReply{}, errNoReply
	}
	if !o.Lead.May(a.lead) {
		w.stale++
		lead := a.lead
		return bus.OrderReply{Refused: mesh.Stale, Lead: &lead}, nil
	}
	a.lead = o.Lead
	if a.busy != "" {
		return bus.OrderReply{Refused: mesh.Busy}, nil
	}
	if o.Role == bus.RoleServe {
		w.serving[o.Run] = id
		return bus.OrderReply{Port: 5201}, nil
	}
	a.busy = o.Run
	w.work.Go(func() { w.test(a, o) })
	if w.rng.IntN(20) == 0 { // the order arrives and its reply does not
		return bus.OrderReply{}, errNoReply
	}
	return bus.OrderReply{}, nil
}

func (w *world) Stop(agent, run string) {}
func (w *world) Disconnect(nkey string) {}

func (w *world) Ping(context.Context, string, string) bool { return false }

// AnotherLeads implements Orders.
func (w *world) AnotherLeads(_ context.Context, holder string) bool {
	w.mu.Lock()
	hubs := slices.Clone(w.hubs)
	w.mu.Unlock()
	return slices.ContainsFunc(hubs, func(h *Hub) bool { return h.leads(holder) })
}

// test runs a test on an agent, writes its document and delivers it.
func (w *world) test(a *simAgent, o bus.Order) {
	w.mu.Lock()
	far := w.agents[w.serving[o.Run]]
	life := a.life
	farLife := far.life
	w.mu.Unlock()
	from := time.Now()
	lasts := 2*o.Spec.Time + time.Duration(w.random(int(time.Second)))
	time.Sleep(lasts)
	w.mu.Lock()
	a.log = append(a.log, occupied{o.Run, from, time.Now(), far.id})
	if a.busy == o.Run {
		a.busy = ""
	}
	if a.life != life || a.down {
		w.mu.Unlock()
		return // killed: nothing was written
	}
	failed := far.life != farLife || far.down
	if !failed {
		a.outbox[o.Run] = simDocument(w.t, o, from, 1e8)
		w.made[o.Run] = true
	}
	w.mu.Unlock()
	if failed {
		w.say(a, func(h *Hub) bool {
			h.Failed(a.id, bus.Failed{V: 1, Run: o.Run, Reason: mesh.FarError})
			return true
		})
		return
	}
	w.deliver(a)
}

// say calls a hub if the agent reaches one.
func (w *world) say(a *simAgent, call func(*Hub) bool) bool {
	w.mu.Lock()
	if len(w.hubs) == 0 || a.cut || a.down {
		w.mu.Unlock()
		return false
	}
	h := w.hubs[w.rng.IntN(len(w.hubs))]
	w.mu.Unlock()
	return call(h)
}

// deliver sends an agent's outbox. A reply may be lost, so that a result comes twice.
func (w *world) deliver(a *simAgent) {
	w.mu.Lock()
	waiting := make(map[string][]byte, len(a.outbox))
	for run, doc := range a.outbox {
		waiting[run] = doc
	}
	w.mu.Unlock()
	for run, doc := range waiting {
		w.say(a, func(h *Hub) bool {
			receipt := h.Result(w.ctx, a.id, doc)
			if receipt.Refused != "" {
				w.t.Errorf("run %s was refused: %s", run, receipt.Refused)
			}
			if !receipt.Stored || w.random(10) == 0 {
				return false
			}
			w.mu.Lock()
			delete(a.outbox, run)
			w.mu.Unlock()
			return true
		})
	}
}

func (w *world) random(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// live keeps an agent present and delivers what waits.
func (w *world) live(a *simAgent) {
	for w.ctx.Err() == nil {
		w.mu.Lock()
		hubs := slices.Clone(w.hubs)
		if a.cut || a.down {
			hubs = nil
		}
		w.mu.Unlock()
		for _, h := range hubs { // each hears it
			h.Here(w.ctx, a.id, bus.Here{V: 1, ClockNs: time.Now().UnixNano()})
		}
		w.deliver(a)
		select {
		case <-w.ctx.Done():
		case <-time.After(10 * time.Second):
		}
	}
}

func simDocument(t *testing.T, o bus.Order, at time.Time, bps float64) []byte {
	t.Helper()
	doc := &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1", Version: "test", StartedAt: at.UTC(),
		Envelope: &record.Envelope{ID: o.Run, TestID: o.Run, Origin: record.Origin(o.Origin), Outcome: record.Done,
			PathKey: o.PathKey}}, Peer: o.Far}
	for _, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
		d := record.Direction{Direction: direction, GoodputBps: &bps, Bytes: &o.Spec.Bytes, Streams: []record.Stream{}}
		d.Limiter = "bottleneck"
		doc.Directions = append(doc.Directions, d)
	}
	encoded, err := record.Encode(doc)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

const simMesh = "[task.t]\nbetween = [\"*\"]\nevery = \"15m\"\ntime = \"5s\"\n" +
	"[site.x]\nagents = [\"a0\", \"a1\"]\nuplink = \"wan\"\n[link.wan]\n"

// newWorld returns agents that have joined.
func newWorld(t *testing.T, agents int, seed uint64) *world {
	t.Helper()
	return newWorldIn(t, t.TempDir(), agents, seed)
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func newWorldIn(t *testing.T, dir string, agents int, seed uint64) *world {
	t.Helper()
	fleet, err := store.OpenFleet(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, rng: newRand(seed), fleet: fleet, agents: map[string]*simAgent{},
		made: map[string]bool{}, serving: map[string]string{}}
	now := time.Now()
	if _, err := fleet.SetMesh(t.Context(), simMesh, "test", now); err != nil {
		t.Fatal(err)
	}
	err = fleet.AddEnrolment(t.Context(), store.Enrolment{Hash: "h", Uses: agents, Until: now.Add(time.Hour)}, now)
	if err != nil {
		t.Fatal(err)
	}
	for i := range agents {
		id := fmt.Sprintf("id%d", i)
		agent := store.Agent{ID: id, Name: fmt.Sprintf("a%d", i), NKey: id}
		_, err := fleet.Enrol(t.Context(), "h", agent, netip.MustParseAddr("127.0.0.1"), now)
		if err != nil {
			t.Fatal(err)
		}
		hello := bus.Hello{V: 1, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})}, Port: 5201}
		if err := fleet.Saw(t.Context(), id, bus.Encode(hello), 0, now); err != nil {
			t.Fatal(err)
		}
		w.agents[id] = &simAgent{id: id, outbox: map[string][]byte{}}
	}
	return w
}

// startHub runs a hub until kill is called. A killed hub does not yield its lead.
func (w *world) startHub() (kill func()) {
	return w.startHubOn(w.fleet, func(e Event) { w.t.Errorf("hub: %s %s", e.Run, e.Detail) })
}

// startHubOn runs a hub on a database. failed receives its errors.
func (w *world) startHubOn(fleet *store.Fleet, failed func(Event)) (kill func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	h := New(Config{Fleet: fleet, Orders: w, Lease: time.Minute, Event: func(e Event) {
		if e.Kind == "error" && ctx.Err() == nil {
			failed(e)
		}
	}})
	w.mu.Lock()
	w.hubs = append(w.hubs, h)
	w.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.loop(ctx)
	}()
	return func() {
		w.mu.Lock()
		w.hubs = slices.DeleteFunc(w.hubs, func(one *Hub) bool { return one == h })
		w.mu.Unlock()
		cancel()
		<-done
	}
}

// TestFleet_Invariants kills agents and hubs, runs two hubs and cuts uplinks on a virtual clock. Each result is stored
// once; no two runs meet on a host or link; each due run ends with a reason. FULLPIPE_BANK_SEED draws other faults.
func TestFleet_Invariants(t *testing.T) {
	seed := uint64(1)
	if text := os.Getenv("FULLPIPE_BANK_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 6, seed)
		defer w.fleet.Close()
		ctx, end := context.WithCancel(context.Background())
		w.ctx = ctx
		for _, a := range w.agents {
			w.work.Go(func() { w.live(a) })
		}
		kills := []func(){w.startHub()}
		faults := 0
		for began := time.Now(); time.Since(began) < 2*time.Hour; faults++ {
			time.Sleep(time.Duration(30+w.random(120)) * time.Second)
			kills = w.fault(kills)
		}
		nothing := "[task.t]\nbetween = [\"nobody\"]\nevery = \"15m\"\n"
		if _, err := w.fleet.SetMesh(ctx, nothing, "test", time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute) // outboxes drain, leases end
		for _, kill := range kills {
			kill()
		}
		end()
		w.work.Wait()
		t.Logf("%d faults", faults)
		w.check(50)
	})
}

// fault makes one fault and mends it. kills end the hubs that run; it returns those that run afterwards.
func (w *world) fault(kills []func()) []func() {
	a := w.agents[fmt.Sprintf("id%d", w.random(len(w.agents)))]
	switch w.random(5) {
	case 0: // kill -9, back after a while
		w.mu.Lock()
		a.down = true
		a.life++
		a.busy = ""
		w.mu.Unlock()
		time.Sleep(time.Duration(w.random(100)) * time.Second)
		w.mend(a)
	case 1: // the site's uplink
		w.mu.Lock()
		a.cut = true
		w.mu.Unlock()
		time.Sleep(time.Duration(w.random(200)) * time.Second)
		w.mend(a)
	case 2: // a hub, and another one takes over
		i := w.random(len(kills))
		kills[i]()
		kills = slices.Delete(kills, i, i+1)
		time.Sleep(time.Duration(w.random(30)) * time.Second)
		if len(kills) == 0 {
			kills = append(kills, w.startHub())
		}
	case 3: // a second hub
		if len(kills) < 2 {
			kills = append(kills, w.startHub())
		}
	}
	return kills
}

func (w *world) mend(a *simAgent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a.down = false
	a.cut = false
}
