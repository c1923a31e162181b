package hub

import (
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
)

// Limits on one agent, or a thief of its key. An agent delivers one result at a time, and sends
// few other messages.
const (
	maxResults     = 2        // of an agent, that wait or are being stored
	maxResultBytes = 64 << 20 // of all agents together
	messageEvery   = time.Second
	messageBurst   = 30
	maxDropped     = 1000 // messages above the limits, until the agent's connection is ended
)

// intake decides which messages of the agents a hub handles. The others are dropped: an agent repeats a result.
type intake struct {
	messages admission.Limiter // other than results
	flooding func(agent string)

	mu      sync.Mutex
	results map[string]int // by agent
	bytes   int
	dropped map[string]int // by agent, since its connection was ended
}

func newIntake(flooding func(agent string)) *intake {
	return &intake{messages: admission.Limiter{Every: messageEvery, Burst: messageBurst}, flooding: flooding,
		results: map[string]int{}, dropped: map[string]int{}}
}

// accepts reports whether a message is handled. If so, done must be called at its end.
func (in *intake) accepts(kind, agent string, size int, now time.Time) (done func(), ok bool) {
	switch {
	case size > bus.MaxMessage:
	case kind == bus.ResultKind:
		done, ok = in.result(agent, size)
	default:
		done = func() {}
		ok = in.messages.Take(agent, now)
	}
	if !ok {
		in.drop(agent)
	}
	return done, ok
}

func (in *intake) result(agent string, size int) (done func(), ok bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.results[agent] >= maxResults || in.bytes+size > maxResultBytes {
		return nil, false
	}
	in.results[agent]++
	in.bytes += size
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.bytes -= size
		in.results[agent]--
		if in.results[agent] == 0 {
			delete(in.results, agent)
		}
	}, true
}

// drop counts a dropped message.
func (in *intake) drop(agent string) {
	in.mu.Lock()
	in.dropped[agent]++
	flood := in.dropped[agent] >= maxDropped
	if flood {
		delete(in.dropped, agent)
	}
	in.mu.Unlock()
	if flood {
		in.flooding(agent)
	}
}

// flooding ends the connection of an agent that sends far more than agents do.
func (h *Hub) flooding(agent string) {
	h.mu.Lock()
	m := h.members[agent]
	h.mu.Unlock()
	if m == nil {
		return
	}
	h.event(Event{Kind: "error", Agent: m.Name, Detail: "it floods the hub with messages: its connection is ended"})
	h.Orders.Disconnect(m.NKey)
}
