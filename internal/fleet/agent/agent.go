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

	mu              sync.Mutex
	endIntroduction context.CancelFunc // of the newest connection

	epoch   int64
	serving map[string]*servedRun // by run
	testing map[string]testedRun
	ordered []string // role and run of the newest orders
}

// testedRun is a run with this host as the near end.
type testedRun struct {
	cancel context.CancelFunc
	spec   bus.Spec
}

// servedRun is a run with this host as the far end.
type servedRun struct {
	spec      bus.Spec
	holder    probe.Holder
	admitted  bool // the near end has connected
	transfers int  // that have ended
	counted   bus.Served
}

// Run runs an agent until ctx ends.
func Run(ctx context.Context, c Config) error {
	spent, err := openLedger(ctx, c.Dir)
	if err != nil {
		return err
	}
	a := &agent{Config: c, box: outbox.In(c.Dir), spent: spent, wake: make(chan struct{}, 1), ctx: ctx,
		serving: map[string]*servedRun{}, testing: map[string]testedRun{}}
	a.server, err = server.New(ctx, server.Config{Address: c.Listen, Key: probe.NewKey(), Holders: a.holders,
		Software: c.Version, Exclusive: true, ShareWindows: true, Event: a.served})
	if err != nil {
		return err
	}
	a.mu.Lock() // connected, which needs the connection, waits
	a.conn, err = bus.Dialer{Agent: c.State.ID, Key: c.Key, URLs: c.State.URLs, TLS: c.TLS,
		Connected: a.connected, Lost: a.lost}.Dial()
	a.mu.Unlock()
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

// connected introduces this agent on a new connection, again until the hub replies. It runs on a goroutine of its own,
// because the connection's callbacks must not wait.
func (a *agent) connected() {
	ctx, cancel := context.WithCancel(a.ctx)
	a.mu.Lock()
	if a.endIntroduction != nil {
		a.endIntroduction() // of the connection before
	}
	a.endIntroduction = cancel
	a.mu.Unlock()
	a.work.Go(func() {
		defer cancel()
		for wait := minRetry; ; wait = min(2*wait, maxRetry) {
			later, err := a.introduce(ctx)
			if err == nil && later == 0 || ctx.Err() != nil {
				return
			}
			if err != nil && wait == minRetry {
				a.lost(err)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(max(wait, min(later, maxRetry))):
			}
		}
	})
}

// introduce says hello once. later is set when the hub asks to come again.
func (a *agent) introduce(ctx context.Context) (later time.Duration, err error) {
	asking, cancel := context.WithTimeout(ctx, helloTime)
	defer cancel()
	waiting, _ := a.box.List()
	hello := bus.Hello{V: bus.Version, Version: a.Version, HostID: a.HostID, Kernel: socket.Kernel(),
		Addresses: a.Addresses, Port: int(a.server.Addr().Port()), Labels: a.Labels, Limits: a.Limits.forHub(a.LimitsErr),
		ClockNs: time.Now().UnixNano(), Waiting: len(waiting)}
	var welcome bus.Welcome
	if err := a.conn.Ask(asking, bus.HelloKind, hello, &welcome); err != nil {
		return 0, err
	}
	if welcome.Error != "" || welcome.V != bus.Version {
		a.event(Event{Kind: "refused", Detail: cmp.Or(welcome.Error, "the hub speaks another version")})
		return welcome.Later, nil
	}
	a.newEpoch(welcome.Epoch)
	a.event(Event{Kind: "connected", Hub: &welcome})
	a.poke()
	return 0, nil
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
