// Package agent is a host of a fleet: it takes part in the runs that a hub orders, and delivers their results.
//
// Life of an order:
//
//  1. accept checks it: epoch, the host's own limits, disk space, the turn of this host's server.
//  2. RoleServe: the run's key is valid at this host's server for one run.
//  3. RoleTest: measure runs both transfers. Its document goes to the outbox, on the disk.
//  4. deliver sends the outbox to the hub. A result leaves it after the hub has stored it.
//
// An agent never changes its host. It knows these two orders, and its own limits only narrow them.
package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/outbox"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// Config configures an agent.
type Config struct {
	State     State
	Key       nkeys.KeyPair
	TLS       *tls.Config // for the hub
	Dir       string      // the state directory
	Listen    string      // ADDR:PORT of this host's server
	Addresses []netip.Addr
	HostID    string
	Version   string
	Labels    map[string]string
	Limits    Limits
	LimitsErr error // the fault of the limits file: no tests are made
	// Measure makes both transfers of a run with the far end at one of the addresses, and returns the encoded
	// document. moved is called with the bytes so far. A document comes with an error where part of the run failed.
	Measure func(ctx context.Context, o bus.Order, moved func(int64)) (doc []byte, err error)
	// Event, if not nil, receives what happens. It must not block.
	Event func(Event)
}

// Event is an event of an agent.
type Event struct {
	Kind   string // ready, connected, lost, order, refused, done, failed, stored
	Run    string
	Role   string
	Far    string
	Reason mesh.Reason
	Detail string
	Hub    *bus.Welcome // of connected
	Addr   netip.AddrPort
	// Begin and End are set on "done" and "failed" of RoleTest: when the run occupied this host.
	Begin, End time.Time
}

// UnreachableError reports that no address of the far end accepted a connection.
type UnreachableError struct{ Err error }

func (e *UnreachableError) Error() string { return e.Err.Error() }
func (e *UnreachableError) Unwrap() error { return e.Err }

// maxOrder is the longest run that an agent accepts.
const maxOrder = 30 * time.Minute

// agent is a running agent.
type agent struct {
	Config
	conn   *bus.Conn
	server *server.Server
	box    *outbox.Box
	spent  *ledger
	wake   chan struct{} // a result waits, or the hub is reachable
	work   sync.WaitGroup
	ctx    context.Context // of all runs

	mu      sync.Mutex
	epoch   int64
	serving map[string]*servedRun // by run
	testing map[string]context.CancelFunc
}

// servedRun is a run of which this host is the far end.
type servedRun struct {
	holder    probe.Holder
	transfers int // that have ended
}

// Run runs an agent until ctx ends.
func Run(ctx context.Context, c Config) error {
	spent, err := openLedger(ctx, c.Dir)
	if err != nil {
		return err
	}
	a := &agent{Config: c, box: outbox.In(c.Dir), spent: spent, wake: make(chan struct{}, 1), ctx: ctx,
		serving: map[string]*servedRun{}, testing: map[string]context.CancelFunc{}}
	a.server, err = server.New(ctx, server.Config{Address: c.Listen, Key: probe.NewKey(), Holders: a.holders,
		Software: c.Version, Exclusive: true, ShareWindows: true, Event: a.served})
	if err != nil {
		return err
	}
	a.conn, err = bus.Dialer{Agent: c.State.ID, Key: c.Key, URLs: c.State.URLs, TLS: c.TLS,
		Connected: a.connected, Lost: a.lost}.Dial()
	if err != nil {
		a.server.Close()
		return err
	}
	defer a.work.Wait()
	defer a.conn.Close()
	if err := a.conn.Serve(bus.OrderKind, a.order); err != nil {
		a.server.Close()
		return err
	}
	if err := a.conn.Serve(bus.StopKind, a.stop); err != nil {
		a.server.Close()
		return err
	}
	a.event(Event{Kind: "ready", Addr: a.server.Addr()})
	a.work.Go(func() { a.deliver(ctx) })
	a.work.Go(func() { a.report(ctx) })
	return a.server.Serve(ctx)
}

func (a *agent) event(e Event) {
	if a.Event != nil {
		a.Event(e)
	}
}

func (a *agent) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *agent) lost(err error) {
	detail := ""
	if err != nil {
		detail = err.Error()
	}
	a.event(Event{Kind: "lost", Detail: detail})
}

// helloTime limits the wait for the hub's welcome.
const helloTime = 20 * time.Second

// connected introduces this agent on a new connection. It runs on a goroutine of its own, because the connection's
// callbacks must not wait.
func (a *agent) connected() {
	a.work.Go(func() {
		ctx, cancel := context.WithTimeout(a.ctx, helloTime)
		defer cancel()
		waiting, _ := a.box.List()
		hello := bus.Hello{V: bus.Version, Version: a.Version, HostID: a.HostID, Kernel: socket.Kernel(),
			Addresses: a.addresses(), Port: int(a.server.Addr().Port()), Labels: a.Labels, Limits: a.Limits.forHub(a.LimitsErr),
			ClockNs: time.Now().UnixNano(), Waiting: len(waiting)}
		var welcome bus.Welcome
		err := a.conn.Ask(ctx, bus.HelloKind, hello, &welcome)
		switch {
		case err != nil:
			a.event(Event{Kind: "lost", Detail: err.Error()})
			return
		case welcome.Error != "" || welcome.V != bus.Version:
			a.event(Event{Kind: "refused", Detail: cmp.Or(welcome.Error, "the hub speaks another version")})
			return
		}
		a.newEpoch(welcome.Epoch)
		a.event(Event{Kind: "connected", Hub: &welcome})
		a.poke()
	})
}

// addresses returns the configured addresses, and the one that this host uses towards the hub.
func (a *agent) addresses() []netip.Addr {
	all := append([]netip.Addr(nil), a.Addresses...)
	return all
}

// newEpoch records an epoch and reports whether it is not older than the newest.
func (a *agent) newEpoch(epoch int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if epoch < a.epoch {
		return false
	}
	a.epoch = epoch
	return true
}

// report sends signs of life until ctx ends.
func (a *agent) report(ctx context.Context) {
	tick := time.NewTicker(bus.HereEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		waiting, _ := a.box.List()
		a.mu.Lock()
		testing := len(a.testing) > 0
		a.mu.Unlock()
		_ = a.conn.Send(bus.HereKind, bus.Here{V: bus.Version, ClockNs: time.Now().UnixNano(), Testing: testing,
			Waiting: len(waiting)}) // without a connection the hub knows by the silence
	}
}

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
	case o.Until <= 0 || o.Until > maxOrder || o.Spec.Time <= 0 || o.Spec.Streams < 0 || o.Spec.Streams > maxStreams:
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
	time.AfterFunc(o.Until, func() { a.forget(o.Run) })
	a.event(Event{Kind: "order", Run: o.Run, Role: o.Role, Far: o.Far})
	return "", ""
}

func (a *agent) forget(run string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.serving, run)
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

// served counts what others transfer with this host. A run has two transfers; its key ends with the second.
func (a *agent) served(e server.Event) {
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

// Waits between deliveries that failed.
const (
	minRetry    = 500 * time.Millisecond
	maxRetry    = 30 * time.Second
	deliverTime = 20 * time.Second
)

// deliver sends the outbox to the hub, whenever a result waits and the hub is reachable.
func (a *agent) deliver(ctx context.Context) {
	wait := minRetry
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
			wait = minRetry
		case <-timer.C:
		}
		later, err := a.deliverAll(ctx)
		switch {
		case err != nil:
			wait = min(2*wait, maxRetry)
			timer.Reset(wait)
		case later > 0:
			timer.Reset(min(max(later, minRetry), maxRetry))
		}
	}
}

// deliverAll sends all waiting results, the oldest first. later is set when the hub asks to wait.
func (a *agent) deliverAll(ctx context.Context) (later time.Duration, err error) {
	items, err := a.box.List()
	if err != nil {
		return 0, err
	}
	for _, item := range items {
		doc, _, err := a.box.Get(item.Name)
		if err != nil {
			a.event(Event{Kind: "failed", Run: item.ID(), Detail: err.Error()})
			continue // it stays for a person to look at
		}
		asking, cancel := context.WithTimeout(ctx, deliverTime)
		var receipt bus.Receipt
		err = a.conn.AskRaw(asking, bus.ResultKind, doc, &receipt)
		cancel()
		switch {
		case err != nil:
			return 0, err
		case receipt.Stored || receipt.Refused != "":
			if err := a.box.Remove(item.Name); err != nil {
				return 0, err
			}
			a.event(Event{Kind: "stored", Run: item.ID(), Detail: receipt.Refused})
		default:
			return max(receipt.Later, minRetry), nil
		}
	}
	return 0, nil
}

// State is what an agent keeps of its membership.
type State struct {
	ID   string   `json:"id"`
	Name string   `json:"name"`
	URLs []string `json:"urls"` // of the hub
	Pin  string   `json:"pin,omitempty"`
}

// Encode returns the state's file.
func (s State) Encode() []byte {
	text, _ := json.MarshalIndent(s, "", "  ") // strings only
	return append(text, '\n')
}
