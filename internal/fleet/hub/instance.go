package hub

import (
	"context"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
)

const (
	// pingTime is how long a process may take to reply, when another one comes with its agent's key.
	pingTime = 5 * time.Second
	// twinLater is when a refused process may come again: the other one may have ended.
	twinLater = 5 * time.Second
)

// isOther reports whether two instances are two processes. Agents of older versions do not name theirs.
func isOther(a, b string) bool { return a != "" && b != "" && a != b }

// rivalOf returns the refusal of a hello if another process with the agent's key is there. A process that does not
// reply has ended, or cannot reach the hub: the one that comes takes its place.
func (h *Hub) rivalOf(ctx context.Context, kind, agent string, data []byte) any {
	var hello bus.Hello
	if kind != bus.HelloKind || bus.Decode(data, &hello) != nil {
		return nil
	}
	h.mu.Lock()
	m := h.members[agent]
	older := ""
	if m != nil {
		older = m.hello.Instance
	}
	h.mu.Unlock()
	if !isOther(hello.Instance, older) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	if !h.Orders.Ping(ctx, agent, older) {
		return nil
	}
	h.reportTwin(agent, time.Now())
	return bus.Welcome{V: bus.Version, Later: twinLater, Leave: true, Error: "another process with this agent's key is " +
		"connected: give this host a state directory and a token of its own, or stop the other process"}
}

// reportTwin reports a second process of an agent, once a day.
func (h *Hub) reportTwin(agent string, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.members[agent]; m != nil && h.daily("agent "+agent, now) {
		h.event(Event{Kind: "error", Agent: m.Name, Detail: "a second process with its key was refused: its state " +
			"directory was copied, or its key was stolen; if so, remove the agent and join again"})
	}
}
