package hub

import (
	"context"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// A receiver that failed is tried again after a pause, which doubles each time.
const (
	minPause = 5 * time.Second
	maxPause = 5 * time.Minute
)

// outbox sends the notices of the database. The database has them until their receiver has taken them.
type outbox struct {
	next    time.Time // when to look into the database; zero: not
	syncAt  time.Time // when the Alertmanagers get all that is open; zero: there are none
	targets map[string]*target
}

// target returns a receiver by name.
func (o *outbox) target(name string) *target {
	t := o.targets[name]
	if t == nil {
		t = &target{}
		o.targets[name] = t
	}
	return t
}

// target is a receiver. Its notices are sent one after the other.
type target struct {
	busy    bool
	failing bool // the last message to an Alertmanager failed
	pause   time.Duration
	next    time.Time // not before
}

// send starts sending what waits, if it is time to.
func (h *Hub) send(ctx context.Context, now time.Time) error {
	h.mu.Lock()
	due := !h.outbox.next.IsZero() && !now.Before(h.outbox.next)
	h.mu.Unlock()
	if !due {
		return nil
	}
	waiting, err := h.Fleet.Notices(ctx)
	if err != nil {
		return err
	}
	byTarget := map[string][]store.Notice{}
	for _, n := range waiting {
		byTarget[n.Target] = append(byTarget[n.Target], n)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.outbox.next = time.Time{}
	receivers := h.receivers()
	for name, notices := range byTarget {
		t := h.outbox.target(name)
		switch {
		case t.busy: // it looks again at its end
		case now.Before(t.next):
			h.sendAt(t.next)
		default:
			alert, known := receivers[name]
			t.busy = true
			h.work.Go(func() { h.deliver(ctx, t, alert, known, notices) })
		}
	}
	return nil
}

// sendAt looks into the outbox at a time, if there are receivers. mu is locked.
func (h *Hub) sendAt(at time.Time) {
	if h.Send != nil && (h.outbox.next.IsZero() || at.Before(h.outbox.next)) {
		h.outbox.next = at
	}
}

// deliver sends notices to one receiver until one fails. Those of a receiver that no longer exists are dropped.
func (h *Hub) deliver(ctx context.Context, t *target, alert mesh.Alert, known bool, notices []store.Notice) {
	var err error
	for _, n := range notices {
		if known {
			err = h.Send(ctx, n, alert)
		}
		if err == nil {
			err = h.Fleet.Taken(ctx, n.ID)
		}
		if err != nil {
			break
		}
	}
	now := time.Now()
	if err != nil && ctx.Err() == nil {
		h.event(Event{Kind: "error", Detail: "alert: " + err.Error()})
	}
	h.mu.Lock()
	t.busy = false
	if err == nil {
		t.pause = 0
		t.next = time.Time{}
	} else {
		t.pause = min(max(2*t.pause, minPause), maxPause)
		t.next = now.Add(t.pause)
	}
	h.sendAt(now)
	h.mu.Unlock()
	h.poke()
}
