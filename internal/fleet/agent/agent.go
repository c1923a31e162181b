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
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/outbox"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
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
	// document. It adds to used its bytes and connections. A document comes with an error where part of the run failed.
	Measure func(ctx context.Context, o bus.Order, used *Use) (doc []byte, err error)
	// Losses, if not nil, returns this host's drops of a transfer; see probe.Session.
	Losses func() func(e *transfer.End, sends bool)
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

// agent is a running agent.
type agent struct {
	Config
	conn   *bus.Conn
	server *server.Server
	box    *outbox.Box
	spent  *ledger
	// instance distinguishes this process from others with the agent's key, as of a copied state directory.
	instance string
	hubs     hubs
	lock     *os.File          // of the state directory
	wake     chan struct{}     // a result waits, or the hub is reachable
	orders   admission.Limiter // accepted ones
	work     sync.WaitGroup
	ctx      context.Context // of all runs

	mu              sync.Mutex
	ended           bool               // work takes no more
	endIntroduction context.CancelFunc // of the newest connection

	reason  string                        // for which the hub does not take this agent
	lead    bus.Lead                      // the newest hub's
	serving map[string]*servedRun         // by run
	testing map[string]context.CancelFunc // runs with this host as the near end
	ordered []string                      // role and run of the newest orders
}

// Run runs an agent until ctx ends.
func Run(ctx context.Context, c Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a, err := open(ctx, c)
	if err != nil {
		return err
	}
	return a.run(cancel)
}

// open listens and connects to the hub. run or close ends the agent.
func open(ctx context.Context, c Config) (a *agent, err error) {
	lock, err := lockDir(c.Dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	a = &agent{Config: c, box: outbox.In(c.Dir), instance: rand.Text(), lock: lock, wake: make(chan struct{}, 1), ctx: ctx,
		orders:  admission.Limiter{Every: orderEvery, Burst: orderBurst},
		serving: map[string]*servedRun{}, testing: map[string]context.CancelFunc{}}
	a.hubs.urls = c.State.URLs
	a.spent, err = openLedger(ctx, c.Dir, c.Limits)
	if err != nil {
		return nil, err
	}
	a.server, err = server.New(ctx, server.Config{Address: c.Listen, Key: probe.NewKey(), Holders: a.holders,
		Software: c.Version, Exclusive: true, ShareWindows: true, Offered: a.offered, Losses: c.Losses,
		Event: a.connectedTo})
	if err != nil {
		return nil, err
	}
	a.start(func() { a.explain(ctx) }) // the first connect takes 10 s for each URL that drops packets
	a.mu.Lock()                        // connected, which needs the connection, waits
	defer a.mu.Unlock()
	a.conn, err = bus.Dialer{Agent: c.State.ID, Key: c.Key, URLs: c.State.URLs, TLS: c.TLS,
		Connected: a.connected, Lost: a.lost}.Dial()
	if err != nil {
		a.server.Close()
		return nil, err
	}
	return a, nil
}

// lockDir locks a state directory until the file is closed or the process ends.
func lockDir(dir string) (*os.File, error) {
	lock, err := atomicfile.LockFile(filepath.Join(dir, "agent.lock"))
	if err == nil && lock == nil {
		err = fmt.Errorf("%s is the state directory of an agent that runs: stop it first, or give this one a directory "+
			"of its own with FULLPIPE_STATE", dir)
	}
	return lock, err
}

// run takes orders until the agent's context ends, or until it can take none. cancel ends the context.
func (a *agent) run(cancel context.CancelFunc) error {
	defer a.lock.Close()
	defer a.conn.Close()
	defer a.end(cancel)
	defer a.server.Close()
	if err := a.conn.Serve(bus.OrderKind, a.order); err != nil {
		return err
	}
	if err := a.conn.Serve(bus.StopKind, a.stop); err != nil {
		return err
	}
	if err := a.conn.Serve(bus.PingKind, a.ping); err != nil {
		return err
	}
	if err := a.conn.Serve(bus.HubsKind, a.announced); err != nil {
		return err
	}
	a.event(Event{Kind: "ready", Addr: a.server.Addr()})
	a.start(func() { a.deliver(a.ctx) })
	a.start(func() { a.report(a.ctx) })
	return a.server.Serve(a.ctx)
}

// start runs work on a goroutine of its own. It returns false, and does not run it, after the agent's end has begun.
func (a *agent) start(work func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return false
	}
	a.work.Go(work)
	return true
}

// end ends the agent's work and waits for it. Runs that end with it still report to the hub.
func (a *agent) end(cancel context.CancelFunc) {
	cancel()
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	a.work.Wait()
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
	a.hubs.welcome(false)
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
	a.start(func() {
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
	hello := bus.Hello{V: bus.Version, Instance: a.instance, Version: a.Version, HostID: a.HostID, Kernel: socket.Kernel(),
		Addresses: a.Addresses, Port: int(a.server.Addr().Port()), Labels: a.Labels, Limits: a.Limits.forHub(a.LimitsErr),
		ClockNs: time.Now().UnixNano(),
		Waiting: len(waiting), Lead: a.followed()}
	var welcome bus.Welcome
	if err := a.conn.Ask(asking, bus.HelloKind, hello, &welcome); err != nil {
		return 0, err
	}
	if welcome.Error != "" || welcome.V != bus.Version {
		a.refused(cmp.Or(welcome.Error, "the hub speaks another version"))
		if welcome.Leave {
			a.conn.Leave(min(max(welcome.Later, minRetry), maxRetry))
			return 0, nil // the next connect introduces it
		}
		return welcome.Later, nil
	}
	a.refused("")
	note := a.welcomed(welcome.Lead)
	a.learn(ctx, welcome.URLs)
	a.hubs.welcome(true)
	a.event(Event{Kind: "connected", Hub: &welcome, Detail: note})
	a.poke()
	return 0, nil
}

// refused reports why the hub does not take this agent, once for each reason. "" is none.
func (a *agent) refused(reason string) {
	a.mu.Lock()
	known := a.reason == reason
	a.reason = reason
	a.mu.Unlock()
	if !known && reason != "" {
		a.event(Event{Kind: "refused", Detail: reason})
	}
}

// followed returns the newest lead that this agent followed.
func (a *agent) followed() bus.Lead {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lead
}

// follows reports whether this agent takes orders of a lead, which it then follows.
func (a *agent) follows(lead bus.Lead) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !lead.May(a.lead) {
		return false
	}
	a.lead = lead
	return true
}

// welcomed follows the lead of the hub of this connection, also one of an older epoch: that hub
// knows the lead before. It returns a note if the hub's database is a copy.
func (a *agent) welcomed(lead bus.Lead) (note string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if lead.Epoch == 0 || !lead.May(bus.Lead{}) {
		return ""
	}
	if before := a.lead.Database; before != "" && before != lead.Database {
		note = "its database is a copy of the one that this host followed until now"
	}
	a.lead = lead
	return note
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
		_ = a.conn.Send(bus.HereKind, bus.Here{V: bus.Version, Instance: a.instance, ClockNs: time.Now().UnixNano(),
			Testing: testing, Waiting: len(waiting)}) // without a connection the hub knows by the silence
	}
}
