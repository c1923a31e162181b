package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/server"
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
	case !a.newEpoch(o.Epoch):
		return mesh.Stale, "from a hub that no longer leads"
	case a.LimitsErr != nil:
		return mesh.LimitsBroken, a.LimitsErr.Error()
	case o.Until <= 0 || o.Until > maxOrder || o.Within <= 0 || o.Spec.Time <= 0 || o.Spec.Streams < 0 ||
		o.Spec.Streams > maxStreams:
		return mesh.Rate, "the order is out of range"
	}
	if reason, detail := a.Limits.refusal(o, a.spent.today(time.Now(), a.Limits), time.Now()); reason != "" {
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
)

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
	run := &servedRun{holder: probe.Holder{Name: o.Run, Key: key, From: o.From, Until: now.Add(o.Until),
		Time: o.Spec.Time + time.Second, Bytes: o.Spec.Bytes, Bps: float64(o.Spec.Bps)}}
	a.mu.Lock()
	defer a.mu.Unlock()
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
	if run.transfers >= 2 {
		delete(a.serving, e.Holder)
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
	a.testing[o.Run] = cancel
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
		if cancel := a.testing[s.Run]; cancel != nil {
			cancel()
		}
		delete(a.serving, s.Run)
		a.mu.Unlock()
	}
	return struct{}{}
}
