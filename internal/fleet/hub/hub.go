// Package hub starts the runs of a fleet, stores their results and follows the paths.
//
// Life of a run:
//
//  1. A pair becomes due: its job is in the database before anything else happens (schedule.go).
//  2. The book starts it when both hosts and all links are free (mesh.Book).
//  3. Grant writes the order into the database, if this hub still leads (run.go).
//  4. The far agent gets the run's key, then the near agent the order to test.
//  5. The result is stored and its job ends in one transaction; then the agent may forget it (results.go).
//  6. The path's detector compares it with earlier ones (results.go).
//  7. The state of all paths and hosts decides about incidents (incidents.go); reports go to receivers (outbox.go).
//
// A hub that loses the lead starts nothing more, and takes results all the same.
package hub

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// Orders sends orders to agents.
type Orders interface {
	Order(ctx context.Context, agent string, o bus.Order) (bus.OrderReply, error)
	Stop(agent, run string)
	// Ping reports whether a process with an agent's key replies before ctx ends.
	Ping(ctx context.Context, agent, instance string) bool
	// AnotherLeads reports whether a hub on this bus leads that is not holder.
	AnotherLeads(ctx context.Context, holder string) bool
	// Disconnect ends the connections of a removed agent.
	Disconnect(nkey string)
}

// Config configures a hub.
type Config struct {
	Fleet  *store.Fleet
	Orders Orders
	// URLs are where agents reach this hub.
	URLs []string
	// Announce, if not nil, sends an agent the URLs of all hubs.
	Announce func(agent string, urls []string)
	// OwnBus reports that agents reach this hub by its own bus alone, not the other hubs of its database.
	OwnBus bool
	// Zone is of quiet hours without a zone; nil: time.Local.
	Zone *time.Location
	// Lease is how long the lead lasts without renewal; 0: 6 s.
	Lease time.Duration
	// Event, if not nil, receives what happens. It must not block.
	Event func(Event)
	// Receivers are receivers of incidents in addition to the mesh file's. None of those may have their names.
	Receivers map[string]mesh.Alert
	// Send reports an incident to its target, a receiver. A notice that failed is repeated later.
	Send func(ctx context.Context, n store.Notice, to mesh.Alert) error
	// Sync sends all that is open, or has ended lately, to the Alertmanager with this name.
	Sync func(ctx context.Context, all []incident.Notice, name string, to mesh.Alert) error
}

// Event is an event of a hub.
type Event struct {
	Kind   string // leads, follows, joined, removed, away, back, started, ended, incident, error
	Agent  string // name
	Run    string
	Pair   [2]string        // names
	Notice *incident.Notice // of an incident
	State  mesh.State
	Reason mesh.Reason
	Detail string
}

const (
	defaultLease = 6 * time.Second
	refreshEvery = 2 * time.Second
	// lostAfter is the time after the end of its order at which a run without a result counts as lost.
	lostAfter = 3 * time.Second
	// admissionTime is the time in which the far agent admits a connection of the near agent.
	admissionTime = 10 * time.Second
	// orderTime limits the wait for an agent's reply.
	orderTime = 5 * time.Second
	// runMargin is the maximum time of a run besides its transfers: connects, handshakes, the far end's report.
	runMargin = 10 * time.Second
)

// Hub is a running hub. Its methods are safe for concurrent use.
type Hub struct {
	Config
	holder string // random, so that a hub that starts again is another one
	wake   chan struct{}
	work   sync.WaitGroup
	door   door

	// Of the loop alone.
	renewAt time.Time
	trimAt  time.Time
	version int64 // of the mesh; -1: plan anew

	// mu protects what follows. Nobody waits for the database or an agent while it is locked.
	mu sync.Mutex

	// Changed by the loop alone, which therefore reads them without mu.
	lead    store.Lead
	leading bool
	other   bool // a hub at other URLs leads
	mesh    *mesh.Mesh
	members map[string]*member
	pairs   map[string]*pair
	book    *mesh.Book // the waiting and running runs; nil unless this hub leads
	budgets map[mesh.Resource]mesh.Budget
	quiet   map[string]recheck.Hours // by task

	freshAt  time.Time
	urls     []string             // of all hubs of the database, this one's first
	urlsAt   time.Time            // when to record this hub's again
	dues     dueQueue             // when pairs are due
	jobs     map[string]store.Job // the jobs that wait in book
	runs     map[string]*run
	paths    map[string]*follower // by pair
	judging  judging
	outbox   outbox
	seen     *sighting            // nil: none
	reported map[string]time.Time // the last event by subject
}

// member is an agent.
type member struct {
	store.Agent
	hello    bus.Hello
	seen     time.Time  // by this hub
	seenFrom netip.Addr // the address of its connection
	away     bool
}

// pair is a planned pair.
type pair struct {
	mesh.Planned
	quiet recheck.Hours
	next  time.Time // due
	near  string    // the agent that connected last
	test  time.Time // when a suspected change is tested again; zero: not
	asked time.Time // when an incident last made it due
}

// run is a granted run.
type run struct {
	job    store.Job
	needs  []mesh.Resource
	near   string          // the agent that tests now
	bytes  int64           // of each direction, at most; 0 is no limit
	failed chan bus.Failed // by its near agent
	done   chan struct{}   // closed when its result is stored
	moved  int64           // bytes that count for budgets, before done is closed
}

// New returns a hub. Run starts it.
func New(c Config) *Hub {
	if c.Zone == nil {
		c.Zone = time.Local
	}
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	h := &Hub{Config: c, wake: make(chan struct{}, 1), members: map[string]*member{}, pairs: map[string]*pair{},
		jobs: map[string]store.Job{}, runs: map[string]*run{}, paths: map[string]*follower{},
		reported: map[string]time.Time{}, outbox: outbox{targets: map[string]*target{}}}
	h.holder = h.place() + rand.Text()
	return h
}

// newID returns the identifier of a run.
func newID(at time.Time) string {
	var random [10]byte
	rand.Read(random[:])
	return record.NewID(at, random)
}

func (h *Hub) event(e Event) {
	if h.Event != nil {
		h.Event(e)
	}
}

func (h *Hub) poke() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Run leads or waits for the lead until ctx ends, and yields the lead. A database that fails is tried again.
func (h *Hub) Run(ctx context.Context) error {
	h.loop(ctx)
	if !h.leading {
		return nil
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), orderTime)
	defer cancel()
	return h.Fleet.YieldLead(ending, h.lead)
}

// loop repeats step until ctx ends.
func (h *Hub) loop(ctx context.Context) {
	defer h.work.Wait()
	for {
		next, err := h.step(ctx, time.Now())
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			h.event(Event{Kind: "error", Detail: err.Error()})
			next = time.Now().Add(refreshEvery)
		}
		timer := time.NewTimer(max(time.Until(next), 0))
		select {
		case <-ctx.Done():
		case <-h.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// step renews the lead and, while this hub leads, queues due runs, starts those whose hosts and links are free, and
// decides about incidents. It returns the time of the next step.
func (h *Hub) step(ctx context.Context, now time.Time) (next time.Time, err error) {
	if !now.Before(h.renewAt) {
		if err := h.renew(ctx, now); err != nil {
			return now, err
		}
	}
	if err := h.pass(ctx); err != nil {
		return now, err
	}
	if h.isStale(now) {
		if err := h.refresh(ctx, now); err != nil {
			return now, err
		}
	}
	if !h.leading {
		return h.wakeAt(now), nil
	}
	if err := h.due(ctx, now); err != nil {
		return now, err
	}
	h.start(ctx, now)
	if err := h.judge(ctx, now); err != nil {
		return now, err
	}
	if err := errors.Join(h.send(ctx, now), h.sync(ctx, now)); err != nil {
		return now, err
	}
	if !now.Before(h.trimAt) {
		h.trimAt = now.Add(trimEvery)
		if err := h.trim(ctx, now); err != nil {
			return now, err
		}
	}
	return h.wakeAt(now), nil
}

// isStale reports whether it is time to refresh, and sets the next time.
func (h *Hub) isStale(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	stale := !now.Before(h.freshAt)
	if stale {
		h.freshAt = now.Add(refreshEvery)
	}
	return stale
}

// wakeAt returns the time of the next step.
func (h *Hub) wakeAt(now time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := h.renewAt
	earlier := func(at time.Time, ok bool) {
		if ok && at.Before(next) {
			next = at
		}
	}
	earlier(h.freshAt, true)
	if !h.leading {
		return next
	}
	due, _, ok := h.dues.first()
	earlier(due, ok)
	earlier(h.judging.next, !h.judging.next.IsZero())
	earlier(h.outbox.next, !h.outbox.next.IsZero())
	earlier(h.outbox.syncAt, !h.outbox.syncAt.IsZero())
	earlier(h.book.Wake(now))
	return next
}

// renew takes or renews the lead.
func (h *Hub) renew(ctx context.Context, now time.Time) error {
	lead, err := h.Fleet.TakeLead(ctx, h.holder, h.Lease)
	h.renewAt = now.Add(h.Lease / 3)
	switch {
	case errors.Is(err, store.ErrNotLeading):
		if h.leading {
			h.follow()
		}
		h.setOther(!strings.HasPrefix(lead.Holder, h.place()))
		return nil
	case err != nil:
		return fmt.Errorf("lead: %w", err) // it may have expired: Grant checks it
	case !h.leading || lead.Epoch != h.lead.Epoch:
		return h.takeOver(ctx, lead, now)
	}
	return nil
}

// follow ends this hub's lead.
func (h *Hub) follow() {
	h.resign()
	h.event(Event{Kind: "follows"})
}

func (h *Hub) resign() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leading = false
	h.book = nil
}

// Refresh reads changes of agents, mesh file and jobs soon.
func (h *Hub) Refresh() {
	h.mu.Lock()
	h.freshAt = time.Time{}
	h.mu.Unlock()
	h.poke()
}
