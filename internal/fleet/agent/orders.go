package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// order handles an order and returns the reply.
func (a *agent) order(data []byte) any {
	var o bus.Order
	if err := bus.Decode(data, &o); err != nil {
		return bus.OrderReply{Refused: mesh.Stale, Detail: "the order cannot be read"}
	}
	if o.Instance != "" && o.Instance != a.instance {
		return nil // for another process with this agent's key
	}
	reason, detail := a.refusal(&o)
	if reason == "" {
		switch o.Role {
		case bus.RoleServe:
			reason, detail = a.serve(o)
		case bus.RoleTest:
			reason, detail = a.test(o)
		default:
			reason = mesh.Stale
			detail = fmt.Sprintf("unknown role %.20q", o.Role)
		}
	}
	if reason != "" {
		a.event(Event{Kind: "refused", Run: o.Run, Role: o.Role, Far: o.Far, Reason: reason, Detail: detail})
	}
	reply := bus.OrderReply{Refused: reason, Detail: detail, Port: int(a.server.Addr().Port())}
	if reason == mesh.Stale {
		lead := a.followed()
		reply.Lead = &lead
	}
	return reply
}

// refusal returns why this host takes no part in a run, "" where it does.
func (a *agent) refusal(o *bus.Order) (mesh.Reason, string) {
	switch {
	case a.ctx.Err() != nil:
		return mesh.Interrupted, ""
	case o.V != bus.Version:
		return mesh.Stale, fmt.Sprintf("version %d of the orders", o.V)
	case !record.IsID(o.Run):
		return mesh.Stale, "the run's ID is not of the form that fullpipe makes"
	case a.LimitsErr != nil:
		return mesh.LimitsBroken, a.LimitsErr.Error()
	case !inRange(o):
		return mesh.Rate, "the order is out of range"
	case o.Spec.Congestion != "" && !slices.Contains(socket.CongestionControls(), o.Spec.Congestion):
		// The kernel would load a module for a privileged process.
		return mesh.Rate, fmt.Sprintf("this host does not allow the congestion control %.16q", o.Spec.Congestion)
	case !a.follows(o.Lead):
		return mesh.Stale, "from a hub that no longer leads, or on an older copy of its database"
	case a.isRepeated(o):
		return mesh.Stale, "this run was ordered before"
	}
	if why := restrictPeers(o, hostNetwork(a.Addresses)); why != "" {
		return mesh.Peer, why
	}
	if reason, detail := a.Limits.refusal(o, a.committed(time.Now()), time.Now()); reason != "" {
		return reason, detail
	}
	if err := a.box.Try(roomForResult); err != nil {
		return mesh.DiskFull, err.Error()
	}
	if !a.orders.Take("", time.Now()) {
		return mesh.Connections, "more than an order a second"
	}
	return "", ""
}

const (
	maxStreams    = 128
	roomForResult = 256 << 10
	maxBytes      = 1 << 50 // of a transfer
	maxServing    = 4       // runs that wait for their near end
	maxRemembered = 256     // orders, to recognize a repeated one
)

// inRange reports whether the figures of an order are possible. The arithmetic on them cannot overflow then.
func inRange(o *bus.Order) bool {
	s := o.Spec
	return o.Until > 0 && o.Until <= bus.MaxOrder && o.Within > 0 && o.Within <= bus.MaxOrder &&
		s.Time > 0 && s.Time <= o.Until &&
		s.Bytes >= 0 && s.Bytes <= maxBytes && s.Bps >= 0 && s.Streams >= 0 && s.Streams <= maxStreams &&
		len(o.Peers) <= bus.MaxAddresses && len(o.From) <= bus.MaxAddresses
}

// isRepeated reports whether a run was ordered before in the same role, and remembers it.
func (a *agent) isRepeated(o *bus.Order) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	name := o.Role + " " + o.Run
	if slices.Contains(a.ordered, name) {
		return true
	}
	a.ordered = append(a.ordered[max(len(a.ordered)+1-maxRemembered, 0):], name)
	return false
}

// committed returns what today's runs use, with the maximum of those that have not ended.
func (a *agent) committed(now time.Time) Use {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.committedLocked(now)
}

// committedLocked is committed while mu is locked.
func (a *agent) committedLocked(now time.Time) Use {
	use := a.spent.today(now)
	for _, run := range a.serving {
		cost := costOf(run.spec)
		for range maxTransfers - run.transfers {
			use = use.plus(Use{Bytes: cost.Bytes, Time: cost.Time})
		}
	}
	return use
}

// test starts a run as the near end. The maximum of its transfers is charged before the first connection.
func (a *agent) test(o bus.Order) (mesh.Reason, string) {
	ctx, cancel := context.WithTimeout(a.ctx, o.Until)
	release, free := a.server.TryTurn(o.Until, cancel)
	if !free {
		cancel()
		return mesh.Busy, "another test runs on this host"
	}
	end := func() {
		cancel()
		release()
	}
	cost := costOf(o.Spec)
	o.Spec.Bytes = cost.Bytes // both transfers end there
	charged, err := a.spent.charge(time.Now(), Use{Bytes: maxTransfers * cost.Bytes, Time: maxTransfers * cost.Time,
		Connections: connectionsOf(&o)})
	if err != nil {
		end()
		return mesh.DiskFull, err.Error()
	}
	a.mu.Lock()
	a.testing[o.Run] = cancel
	a.mu.Unlock()
	a.event(Event{Kind: "order", Run: o.Run, Role: o.Role, Far: o.Far})
	if !a.start(func() { a.measure(ctx, o, charged, end) }) {
		charged.settle(time.Now(), Use{})
		end()
		return mesh.Interrupted, ""
	}
	return "", ""
}

// measure makes a run's transfers. end frees this host.
func (a *agent) measure(ctx context.Context, o bus.Order, charged *charge, end func()) {
	begin := time.Now()
	var used Use
	doc, err := a.Measure(ctx, o, &used)
	interrupted := a.ctx.Err() != nil
	timedOut := ctx.Err() != nil && !interrupted
	end()
	now := time.Now()
	used.Time = now.Sub(begin)
	if err == nil {
		used.Connections = 0
	}
	charged.settle(now, used)
	a.mu.Lock()
	delete(a.testing, o.Run)
	a.mu.Unlock()
	a.finish(o, doc, err, Event{Run: o.Run, Role: o.Role, Far: o.Far, Begin: begin, End: now}, interrupted, timedOut)
}

// finish puts a run's document into the outbox, or reports why there is none.
func (a *agent) finish(o bus.Order, doc []byte, err error, e Event, interrupted, timedOut bool) {
	if doc != nil {
		if put := a.box.Put(o.Run, "", doc, nil, time.Now(), 0); put == nil {
			e.Kind = "done"
			a.event(e)
			a.poke()
			return
		} else {
			err = put
			e.Reason = mesh.DiskFull
		}
	}
	var unreachable *UnreachableError
	switch {
	case e.Reason != "":
	case interrupted:
		e.Reason = mesh.Interrupted
	case errors.As(err, &unreachable):
		e.Reason = mesh.Unreachable
	case timedOut:
		e.Reason = mesh.TimedOut
	default:
		e.Reason = mesh.FarError
	}
	e.Kind = "failed"
	detail := ""
	switch {
	case unreachable != nil:
		e.Detail = unreachable.Error()
		detail = unreachable.Codes()
	case err != nil:
		e.Detail = err.Error()
		detail = e.Detail
	}
	a.event(e)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), failedTime)
	defer cancel()
	var receipt bus.Receipt
	_ = a.conn.Ask(ctx, bus.FailedKind, bus.Failed{V: bus.Version, Run: o.Run, Reason: e.Reason, Detail: detail},
		&receipt) // without it the run is lost at the end of its order
}

// failedTime limits the wait for the hub when a run failed, also at the agent's end.
const failedTime = 2 * time.Second

// ping replies if this process is meant.
func (a *agent) ping(data []byte) any {
	var p bus.Ping
	if bus.Decode(data, &p) != nil || p.Instance != a.instance {
		return nil
	}
	return struct{}{}
}

// stop ends a run.
func (a *agent) stop(data []byte) any {
	var s bus.Stop
	if bus.Decode(data, &s) == nil {
		a.mu.Lock()
		if cancel, known := a.testing[s.Run]; known {
			cancel()
		}
		a.close(a.serving[s.Run])
		a.mu.Unlock()
	}
	return struct{}{}
}
