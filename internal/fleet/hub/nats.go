package hub

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
)

// Wire is a hub's side of the bus.
type Wire struct {
	Conn *nats.Conn
	// Kick ends the connections of a removed agent; nil: the server does it.
	Kick func(nkey string)
}

// Order implements Orders.
func (w *Wire) Order(ctx context.Context, agent string, o bus.Order) (reply bus.OrderReply, err error) {
	m, err := w.Conn.RequestWithContext(ctx, bus.Down(agent, bus.OrderKind), bus.Encode(o))
	if err != nil {
		return reply, err
	}
	return reply, bus.Decode(m.Data, &reply)
}

// Stop implements Orders.
func (w *Wire) Stop(agent, run string) {
	_ = w.Conn.Publish(bus.Down(agent, bus.StopKind), bus.Encode(bus.Stop{Run: run})) // its order ends by itself
}

// Ping implements Orders.
func (w *Wire) Ping(ctx context.Context, agent, instance string) bool {
	_, err := w.Conn.RequestWithContext(ctx, bus.Down(agent, bus.PingKind), bus.Encode(bus.Ping{Instance: instance}))
	return err == nil
}

// AnotherLeads implements Orders.
func (w *Wire) AnotherLeads(ctx context.Context, holder string) bool {
	_, err := w.Conn.RequestWithContext(ctx, bus.HubSubject, []byte(holder))
	return err == nil
}

// Announce sends an agent the URLs of the hubs.
func (w *Wire) Announce(agent string, urls []string) {
	_ = w.Conn.Publish(bus.Down(agent, bus.HubsKind), bus.Encode(bus.Hubs{URLs: urls})) // its next welcome has them
}

// Disconnect implements Orders.
func (w *Wire) Disconnect(nkey string) {
	if w.Kick != nil {
		w.Kick(nkey)
	}
}

// handleTime limits the work for one message.
const handleTime = 20 * time.Second

// maxHandlers limits the messages that are handled at a time. The others wait: see intake.
const maxHandlers = 8

// handler handles a message of an agent and returns the reply; nil is none.
type handler = func(ctx context.Context, agent string, data []byte) any

// Listen takes the agents' messages until the connection closes. Several hubs share them.
func (w *Wire) Listen(ctx context.Context, h *Hub) error {
	in := newIntake(h.flooding)
	slots := make(chan struct{}, maxHandlers)
	// take handles a kind of messages. The connection's callback never waits, so that one agent delays no other.
	take := func(kind string, handle handler) error {
		_, err := w.Conn.QueueSubscribe(bus.AnyUp(kind), "hub", func(m *nats.Msg) {
			agent := bus.AgentOf(m.Subject)
			if agent == "" || m.Reply != "" && !repliesTo(m, agent) {
				return
			}
			done, ok := in.accepts(kind, agent, len(m.Data), time.Now())
			if !ok {
				return
			}
			go func() {
				defer done()
				if refused := h.rivalOf(ctx, kind, agent, m.Data); refused != nil { // takes no slot: it waits for a ping
					_ = m.Respond(bus.Encode(refused))
					return
				}
				slots <- struct{}{}
				defer func() { <-slots }()
				ctx, cancel := context.WithTimeout(ctx, handleTime)
				defer cancel()
				if reply := handle(ctx, agent, m.Data); reply != nil {
					_ = m.Respond(bus.Encode(reply)) // the agent asks again
				}
			}()
		})
		return err
	}
	err := take(bus.HelloKind, func(ctx context.Context, agent string, data []byte) any {
		var m bus.Hello
		if err := bus.Decode(data, &m); err != nil {
			return bus.Welcome{V: bus.Version, Error: "the hello cannot be read"}
		}
		return h.Hello(ctx, agent, m)
	})
	if err != nil {
		return err
	}
	// Each hub hears of each agent: presence is the hub's own.
	_, err = w.Conn.Subscribe(bus.AnyUp(bus.HereKind), func(m *nats.Msg) {
		var here bus.Here
		agent := bus.AgentOf(m.Subject)
		if _, ok := in.accepts(bus.HereKind, agent, len(m.Data), time.Now()); ok && bus.Decode(m.Data, &here) == nil {
			h.Here(ctx, agent, here)
		}
	})
	if err != nil {
		return err
	}
	if err := w.sayWhetherLeads(h); err != nil {
		return err
	}
	err = take(bus.ServedKind, func(ctx context.Context, agent string, data []byte) any {
		var served bus.Served
		if err := bus.Decode(data, &served); err == nil {
			h.Served(ctx, agent, served)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = take(bus.ResultKind, func(ctx context.Context, agent string, data []byte) any {
		return h.Result(ctx, agent, data)
	})
	if err != nil {
		return err
	}
	return take(bus.FailedKind, func(_ context.Context, agent string, data []byte) any {
		var f bus.Failed
		if err := bus.Decode(data, &f); err != nil {
			return bus.Receipt{Refused: "it cannot be read"}
		}
		return h.Failed(agent, f)
	})
}

// sayWhetherLeads replies to hubs that ask whether another one leads.
func (w *Wire) sayWhetherLeads(h *Hub) error {
	_, err := w.Conn.Subscribe(bus.HubSubject, func(m *nats.Msg) {
		if h.leads(string(m.Data)) {
			_ = m.Respond(nil) // the other one asks again
		}
	})
	return err
}

// repliesTo reports whether a request's reply goes to the agent itself. The hub may publish to any subject, so an agent
// that names another's would have the hub write there.
func repliesTo(m *nats.Msg, agent string) bool {
	return agent != "" && strings.HasPrefix(m.Reply, bus.Inbox(agent)+".")
}
