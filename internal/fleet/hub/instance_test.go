package hub

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// processes are the processes with one agent's key that reply to pings.
type processes struct {
	Orders
	alive map[string]bool
	pings int
}

// Ping implements Orders.
func (p *processes) Ping(ctx context.Context, _, instance string) bool {
	p.pings++
	if !p.alive[instance] {
		<-ctx.Done()
	}
	return p.alive[instance]
}

// TestRival checks that the older of two processes with one agent's key stays while it replies, and that the younger
// one takes its place when it does not.
func TestRival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &processes{alive: map[string]bool{}}
		var events []Event
		h := New(Config{Orders: p, Event: func(e Event) { events = append(events, e) }})
		h.members["id"] = &member{Agent: store.Agent{Name: "anna"}}
		hello := func(instance string) (refused bool, took time.Duration) {
			begin := time.Now()
			reply := h.rivalOf(t.Context(), bus.HelloKind, "id", bus.Encode(bus.Hello{V: bus.Version, Instance: instance}))
			if reply == nil {
				h.members["id"].hello.Instance = instance // as Hello does
				return false, time.Since(begin)
			}
			welcome := reply.(bus.Welcome)
			if welcome.Error == "" || welcome.Later <= 0 {
				t.Errorf("%+v", welcome)
			}
			return true, time.Since(begin)
		}
		for i, step := range []struct {
			instance string
			alive    string // the process that replies to a ping
			refused  bool
			pings    int
			events   int
			sleep    time.Duration
		}{
			{instance: "one"},
			{instance: "one", alive: "one"}, // the same process, after a reconnect
			{instance: "two", alive: "one", refused: true, pings: 1, events: 1}, // a copy
			{instance: "two", alive: "one", refused: true, pings: 2, events: 1}, // and again: one event a day
			{instance: "one", alive: "one", pings: 2, events: 1},
			{instance: "two", alive: "one", refused: true, pings: 3, events: 2, sleep: 25 * time.Hour},
			{instance: "two", pings: 4, events: 2},                              // one has ended, or cannot reach the hub
			{instance: "one", alive: "two", refused: true, pings: 5, events: 2}, // and comes back
			{instance: "", alive: "two", pings: 5, events: 2},                   // of an older version
		} {
			time.Sleep(step.sleep)
			clear(p.alive)
			p.alive[step.alive] = true
			refused, took := hello(step.instance)
			if refused != step.refused || p.pings != step.pings || len(events) != step.events || took > pingTime {
				t.Errorf("step %d: refused %v after %v, %d pings, %d events", i, refused, took, p.pings, len(events))
			}
		}
		if events[0].Agent != "anna" {
			t.Errorf("%+v", events[0])
		}
		h.members["id"].hello.Instance = "two"
		seen := h.members["id"].seen
		h.Here(t.Context(), "id", bus.Here{V: bus.Version, Instance: "one"})
		if h.members["id"].seen != seen {
			t.Error("a refused process keeps the agent present")
		}
	})
}
