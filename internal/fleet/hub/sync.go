package hub

import (
	"context"
	"maps"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
)

const (
	// syncEvery is how often an Alertmanager gets all that is open: one that was restarted has it after this time.
	syncEvery = time.Minute
	// endsShown is how long an Alertmanager gets the end of an incident: it may be away for some time.
	endsShown = 15 * time.Minute
)

// receivers returns the receivers of incidents by name. mu is locked.
func (h *Hub) receivers() map[string]mesh.Alert {
	all := maps.Clone(h.Receivers)
	if all == nil {
		all = map[string]mesh.Alert{}
	}
	if h.mesh != nil {
		maps.Copy(all, h.mesh.Alerts)
	}
	return all
}

// sync starts sending the incidents to each Alertmanager, if it is time to. Nothing waits for one that is away: the
// next message has all.
func (h *Hub) sync(ctx context.Context, now time.Time) error {
	h.mu.Lock()
	due := !h.outbox.syncAt.IsZero() && !now.Before(h.outbox.syncAt)
	h.mu.Unlock()
	if !due {
		return nil
	}
	incidents, err := h.Fleet.Incidents(ctx, now.Add(-endsShown))
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.outbox.syncAt = time.Time{}
	for name, alert := range h.receivers() {
		if alert.Alertmanager == "" {
			continue
		}
		h.outbox.syncAt = now.Add(syncEvery)
		t := h.outbox.target(name)
		if t.busy {
			continue
		}
		var all []incident.Notice
		for _, i := range incidents {
			if !i.Silenced && concerns(alert, &i) {
				all = append(all, incident.Notice{Incident: i, Names: h.namesIn(&i)})
			}
		}
		t.busy = true
		h.work.Go(func() {
			err := h.Sync(ctx, all, name, alert)
			h.mu.Lock()
			defer h.mu.Unlock()
			t.busy = false
			if err != nil && !t.failing && ctx.Err() == nil {
				h.event(Event{Kind: "error", Detail: "alert: " + err.Error()})
			}
			t.failing = err != nil
		})
	}
	return nil
}

// namesIn returns the names of the hosts of an incident, by ID. mu is locked.
func (h *Hub) namesIn(i *incident.Incident) map[string]string {
	names := map[string]string{}
	for id, m := range h.members {
		if i.Concerns(id) {
			names[id] = m.Name
		}
	}
	return names
}
