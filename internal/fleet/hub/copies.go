package hub

import (
	"context"
	"errors"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// lead returns a lead as agents have it.
func leadOf(l store.Lead) bus.Lead {
	return bus.Lead{Epoch: l.Epoch, Database: l.Database, Proof: l.Proof(l.Database, l.Epoch)}
}

// sighting is a lead that an agent has followed and that is later than any that this database
// knows.
type sighting struct {
	bus.Lead
	agent  string
	asked  bool // the hubs on this bus
	looked bool // leads is known
	leads  bool // another hub on this bus leads now
}

// returned takes the lead that an agent has followed. One that this database does not know is of a
// hub on a copy: this database was restored, or that one. returned gives the lead that the agent is
// to follow, without an epoch if this hub does not lead, or not yet the agents that have seen that
// one.
func (h *Hub) returned(agent string, lead bus.Lead) bus.Lead {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.leading {
		return bus.Lead{}
	}
	if lead.Proof == "" || !h.lead.Proves(lead.Database, lead.Epoch, lead.Proof) {
		return leadOf(h.lead)
	}
	switch {
	case lead.Epoch > h.lead.Epoch:
		if h.seen == nil {
			h.seen = &sighting{Lead: lead, agent: agent}
			h.poke()
		}
		return bus.Lead{}
	case lead.Database != h.lead.Database:
		h.reportCopy(agent, lead)
	}
	return leadOf(h.lead)
}

// look asks whether the hub of a sighting is there.
func (h *Hub) look(ctx context.Context, s *sighting) {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	leads := h.Orders.AnotherLeads(ctx, h.holder)
	h.mu.Lock()
	s.leads = leads
	s.looked = true
	h.mu.Unlock()
	h.poke()
}

// pass gives this hub's lead an epoch above one that agents have seen, unless the hub of that one
// is there.
func (h *Hub) pass(ctx context.Context) (err error) {
	h.mu.Lock()
	seen := h.seen
	looked := seen != nil && seen.looked
	if seen != nil && !seen.asked {
		seen.asked = true
		h.work.Go(func() { h.look(ctx, seen) })
	}
	h.mu.Unlock()
	if !looked {
		return nil
	}
	lead := h.lead
	switch {
	case !h.leading:
		err = store.ErrNotLeading
	case seen.leads:
		lead, err = h.Fleet.TakeLead(ctx, h.holder, h.Lease)
	case seen.Epoch > lead.Epoch:
		lead, err = h.Fleet.Above(ctx, lead, seen.Epoch)
	}
	if errors.Is(err, store.ErrNotLeading) {
		h.renewAt = time.Time{} // it is a later lead of this database
	} else if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = nil
	if err == nil {
		h.lead = lead
		h.reportCopy(seen.agent, seen.Lead)
	}
	return nil
}

// leads reports whether this hub leads and is another one than a holder.
func (h *Hub) leads(holder string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leading && h.holder != holder
}

// reportCopy reports a hub on a copy of the database, once a day. mu is locked.
func (h *Hub) reportCopy(agent string, lead bus.Lead) {
	m := h.members[agent]
	if m == nil || !h.daily("database "+lead.Database, time.Now()) {
		return
	}
	h.event(Event{Kind: "error", Agent: m.Name, Detail: "it has followed a hub on another copy of this database: one of " +
		"them was restored; see that only one hub runs"})
}

// daily reports whether an event of a subject is due: one a day. mu is locked.
func (h *Hub) daily(subject string, now time.Time) bool {
	last, known := h.reported[subject]
	if known && now.Sub(last) < reportEvery {
		return false
	}
	h.reported[subject] = now
	return true
}

// reportEvery is the time between two events about one subject.
const reportEvery = 24 * time.Hour
