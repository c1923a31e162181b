package hub

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/store"
)

// door has what admission needs.
type door struct {
	mu      sync.Mutex
	members map[string]string     // ID by public key, as last read from the store
	from    map[string]netip.Addr // address of the newest connection by ID
}

// patience is how long a known member waits for the store. A NATS server of the user's pings its clients 2 s after they
// connect; a client that is not admitted by then gives up.
const patience = time.Second

// Admit returns the ID of the member with a public key, which connects from an address. The store decides. While it
// does not reply, the members that it had last are admitted.
func (h *Hub) Admit(ctx context.Context, nkey string, from netip.Addr) (string, error) {
	if h.otherLeads() {
		return "", errOtherLeads
	}
	asking := ctx
	if h.door.member(nkey) != "" {
		var cancel context.CancelFunc
		asking, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	a, err := h.Fleet.AgentByKey(asking, nkey)
	id := a.ID
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		id = h.door.member(nkey) // asked again: it may have been removed meanwhile
	}
	if id == "" {
		return "", err
	}
	h.door.enter(id, from)
	return id, nil
}

func (d *door) member(nkey string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.members[nkey]
}

func (d *door) enter(id string, from netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.from == nil {
		d.from = map[string]netip.Addr{}
	}
	d.from[id] = from.Unmap()
}

// address returns the address of an agent's newest connection, the zero value before one.
func (d *door) address(id string) netip.Addr {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.from[id]
}

// set replaces the members.
func (d *door) set(agents []store.Agent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	from := make(map[string]netip.Addr, len(agents))
	d.members = make(map[string]string, len(agents))
	for _, a := range agents {
		d.members[a.NKey] = a.ID
		if at, ok := d.from[a.ID]; ok {
			from[a.ID] = at
		}
	}
	d.from = from
}
