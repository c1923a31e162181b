package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// order handles an order and returns the reply.
func (a *agent) order(data []byte) any {
	var o bus.Order
	if err := bus.Decode(data, &o); err != nil {
		return bus.OrderReply{Refused: mesh.Stale, Detail: "the order cannot be read"}
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
	return bus.OrderReply{Refused: reason, Detail: detail, Port: int(a.server.Addr().Port())}
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
	case !a.newEpoch(o.Epoch):
		return mesh.Stale, "from a hub that no longer leads"
	case a.isRepeated(o):
		return mesh.Stale, "this run was ordered before"
	}
	for _, p := range o.Peers {
		if !a.isPeer(p.Addr()) {
			return mesh.Peer, p.Addr().String()
		}
	}
	if reason, detail := a.Limits.refusal(o, a.committed(time.Now()), time.Now()); reason != "" {
		return reason, detail
	}
	if err := a.box.Try(roomForResult); err != nil {
		return mesh.DiskFull, err.Error()
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
	return o.Until > 0 && o.Until <= maxOrder && o.Within > 0 && o.Within <= maxOrder &&
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

// isPeer reports whether an address can be another agent's. One that has a meaning on this host or link only is one
// where this host's own address is of that kind.
func (a *agent) isPeer(addr netip.Addr) bool {
	addr = addr.Unmap()
	own := func(kind func(netip.Addr) bool) bool { return slices.ContainsFunc(a.Addresses, kind) }
	switch {
	case !addr.IsValid(), addr.IsUnspecified(), addr.IsMulticast():
		return false
	case addr.IsLoopback():
		return own(netip.Addr.IsLoopback)
	case addr.IsLinkLocalUnicast():
		return own(netip.Addr.IsLinkLocalUnicast)
	}
	return true
}

// committed returns the cost of today's runs, with the maximum of those that have not ended.
func (a *agent) committed(now time.Time) recheck.Cost {
	cost := a.spent.today(now, a.Limits)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, run := range a.serving {
		for range 2 - min(run.transfers, 2) {
			cost = cost.Plus(recheck.Cost{Bytes: run.spec.Bytes, Time: run.spec.Time})
		}
	}
	for _, run := range a.testing {
		cost = cost.Plus(recheck.Cost{Bytes: 2 * run.spec.Bytes, Time: 2 * run.spec.Time})
	}
	return cost
}

// serve makes the run's key valid.
func (a *agent) serve(o bus.Order) (mesh.Reason, string) {
	key, err := probe.ParseKey(o.Key)
	if err != nil {
		return mesh.Stale, "the run's key cannot be read"
	}
	release, free := a.server.TryTurn(0, func() {})
	if !free {
		return mesh.Busy, "another test runs on this host"
	}
	release() // the near end takes the turn when it connects
	now := time.Now()
	run := &servedRun{spec: o.Spec, counted: bus.Served{V: bus.Version, Run: o.Run, UpBytes: -1, DownBytes: -1},
		holder: probe.Holder{Name: o.Run, Key: key, From: o.From, Until: now.Add(o.Until),
			Time: o.Spec.Time + time.Second, Bytes: o.Spec.Bytes, Bps: float64(o.Spec.Bps)}}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.serving) >= maxServing {
		return mesh.Busy, "other runs wait for this host"
	}
	a.serving[o.Run] = run
	time.AfterFunc(o.Within, func() { a.endAdmission(o.Run) })
	time.AfterFunc(o.Until, func() { a.forget(o.Run) })
	a.event(Event{Kind: "order", Run: o.Run, Role: o.Role, Far: o.Far})
	return "", ""
}

func (a *agent) forget(run string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.serving, run)
}

// endAdmission makes a run's key invalid if the near end has not connected.
func (a *agent) endAdmission(run string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.serving[run]; s != nil && !s.admitted {
		delete(a.serving, run)
	}
}

// holders returns the keys of the runs that this host serves now.
func (a *agent) holders() (all []probe.Holder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, run := range a.serving {
		all = append(all, run.holder)
	}
	return all
}

// served notes that others connect, and counts their transfers. A run has two transfers; its key ends with the second.
func (a *agent) served(e server.Event) {
	if e.Kind == "client" {
		a.mu.Lock()
		defer a.mu.Unlock()
		if run := a.serving[e.Holder]; run != nil {
			run.admitted = true
		}
		return
	}
	if e.Kind != "transfer" || e.Result == nil {
		return
	}
	span, _ := e.Result.Received()
	a.spent.add(time.Now(), a.Limits, span.Bytes, span.Duration())
	a.mu.Lock()
	defer a.mu.Unlock()
	run := a.serving[e.Holder]
	if run == nil {
		return
	}
	run.transfers++
	if e.Result.Spec.Direction == transfer.Up {
		run.counted.UpBytes = span.Bytes
	} else {
		run.counted.DownBytes = span.Bytes
	}
	if run.transfers >= 2 {
		delete(a.serving, e.Holder)
		_ = a.conn.Send(bus.ServedKind, run.counted) // without it the result is the near end's word
	}
}

// test starts a run as the near end.
func (a *agent) test(o bus.Order) (mesh.Reason, string) {
	ctx, cancel := context.WithTimeout(a.ctx, o.Until)
	release, free := a.server.TryTurn(o.Until, cancel)
	if !free {
		cancel()
		return mesh.Busy, "another test runs on this host"
	}
	a.mu.Lock()
	a.testing[o.Run] = testedRun{cancel, o.Spec}
	a.mu.Unlock()
	a.event(Event{Kind: "order", Run: o.Run, Role: o.Role, Far: o.Far})
	a.work.Go(func() {
		begin := time.Now()
		moved := int64(0)
		doc, err := a.Measure(ctx, o, func(n int64) { moved = n })
		interrupted := a.ctx.Err() != nil
		timedOut := ctx.Err() != nil && !interrupted
		cancel()
		release()
		end := time.Now()
		a.spent.add(end, a.Limits, moved, end.Sub(begin))
		a.mu.Lock()
		delete(a.testing, o.Run)
		a.mu.Unlock()
		a.finish(o, doc, err, Event{Run: o.Run, Role: o.Role, Far: o.Far, Begin: begin, End: end}, interrupted, timedOut)
	})
	return "", ""
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
	if err != nil {
		e.Detail = err.Error()
	}
	a.event(e)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), failedTime)
	defer cancel()
	var receipt bus.Receipt
	_ = a.conn.Ask(ctx, bus.FailedKind, bus.Failed{V: bus.Version, Run: o.Run, Reason: e.Reason, Detail: e.Detail},
		&receipt) // without it the run is lost at the end of its order
}

// failedTime limits the wait for the hub when a run failed, also at the agent's end.
const failedTime = 2 * time.Second

// stop ends a run.
func (a *agent) stop(data []byte) any {
	var s bus.Stop
	if bus.Decode(data, &s) == nil {
		a.mu.Lock()
		if run, known := a.testing[s.Run]; known {
			run.cancel()
		}
		delete(a.serving, s.Run)
		a.mu.Unlock()
	}
	return struct{}{}
}
