package watch

// The loop of a watch:
//
//  1. open: a netlink socket for requests and one for the reports of sockets that end; other network namespaces.
//  2. begin: two dumps of all sockets, since one may miss some. Their counters are the base.
//  3. sample, each Config.Sample: drainDestroyEvents, then look up the sockets of the fast tier.
//  4. dump, each Config.Every: read all sockets; of many only those that an eBPF iterator found active (readMoved).
//  5. show: Tracker.look judges the connections that moved, with owners from /proc (owner_linux.go), and makes a View;
//     View.finish compares connections that share a link or a host.
//  6. choose: the busiest connections become the fast tier of the next period.

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

const (
	ask     = sockdiag.AskInfo | sockdiag.AskCongestion | sockdiag.AskMemory
	askFast = sockdiag.AskInfo | sockdiag.AskMemory

	firstStep = 100 * time.Millisecond

	maxHandshakes = 1024 // that are shared
)

// watcher is the state of the loop. It runs on one goroutine.
type watcher struct {
	cfg           Config
	sockets       *sockdiag.Follower
	account       *Tracker
	choices       uint32 // how often the fast tier was chosen
	owners        *owners
	start         time.Time
	began         time.Duration // of the period
	fast          fast
	activeSockets activeSockets
	netns         *netnsWatchers    // nil: other network namespaces are not looked into
	names         map[string]string // congestion controls: one string each
	handshakes    map[transfer.Handshake]*transfer.Handshake
	seed          maphash.Seed
	words         []byte        // the input of a fingerprint
	dumpAt        time.Duration // when the last dump began
	took          time.Duration
	missed        int // dumps that failed
	within        int // sockets of connections within this host that the last dump left out
	unread        []verdict.Note
	programs      *programs
}

func newWatcher(cfg Config) *watcher {
	account := NewTracker()
	account.shortage = &shortage{}
	if cfg.Anonymize {
		account.names = newPseudonyms()
	}
	return &watcher{cfg: cfg, account: account, owners: newOwners(&cfg.Match, cfg.Namespace), start: time.Now(),
		fast: fast{spare: &[]live.Samples{}}, names: map[string]string{},
		programs:   newPrograms(&cfg, account.names),
		handshakes: map[transfer.Handshake]*transfer.Handshake{}, seed: maphash.MakeSeed()}
}

// begin reads the open connections before anything is shown. All of them are kept, so garbage collection meanwhile
// would only take time.
func (w *watcher) begin() error {
	const rarely = 400
	defer debug.SetGCPercent(debug.SetGCPercent(rarely))
	// Twice: a dump may miss a socket, which would then look as if it were born since.
	if err := errors.Join(w.readAll(), w.dump()); err != nil {
		return err
	}
	if w.netns != nil {
		w.netns.find(w)
	}
	w.choose()
	w.account.Period(func(*Connection) {})
	w.began = w.now()
	return nil
}

// period reads all connections and shows those that moved since the last period. A read that fails for lack of memory
// or time makes the period longer.
func (w *watcher) period(each func(*View) error, last bool) error {
	switch err := w.dump(); {
	case passing(err):
		w.missed++
		if !last {
			return nil
		}
	case err != nil:
		return err
	}
	if w.netns != nil {
		w.netns.read(w, w.cfg.Cumulative && each != nil)
	}
	if each == nil {
		w.name()
	} else if err := w.show(each); err != nil {
		return err
	}
	w.choose()
	return nil
}

// name finds the programs of connections that may have ended before they are shown.
func (w *watcher) name() {
	w.account.moved(func(c *Connection) {
		if w.cfg.followsNeighbours() && !w.cfg.Match.ends(c.Local, c.Remote) {
			return
		}
		owner := w.owner(c)
		if owner.PID == 0 {
			return
		}
		c.Owner = owner
		if !w.cfg.Match.owned() || w.cfg.Match.owner(owner) {
			w.programs.follow(owner.PID)
		}
	})
	if w.netns != nil {
		for _, one := range w.netns.open {
			one.name()
		}
	}
}

func run(ctx context.Context, cfg Config, each func(*View) error) (err error) {
	w := newWatcher(cfg)
	if err := w.open(); err != nil {
		return err
	}
	defer w.close()
	if err := w.begin(); err != nil {
		return err
	}
	tick := time.NewTicker(cfg.Sample)
	defer tick.Stop()
	due := newDumps(w.now(), cfg)
	for {
		over := false
		select {
		case <-ctx.Done():
			over = true
		case <-tick.C:
			over = w.namespaceLeft()
		}
		if err := w.sample(); err != nil && !passing(err) {
			return err
		}
		if w.netns != nil {
			w.netns.sample()
		}
		now := w.now()
		if short := w.account.shortage; now >= short.next {
			short.note(sockdiag.MemoryShort(), now)
		}
		if !over && now < due.next {
			continue
		}
		show := each
		if cfg.Cumulative && !over { // only the last view of a cumulative watch is shown
			show = nil
		}
		if err := w.period(show, over); err != nil {
			return err
		}
		if over {
			return ctx.Err()
		}
		due.done(w.now())
	}
}

// dumps schedules the dumps of a watcher.
type dumps struct{ next, step, every time.Duration }

// newDumps returns those of a watch that begins now. In a cumulative watch the first dumps follow soon,
// each next one after twice the time, so that connections which begin just after the watch are sampled early.
func newDumps(now time.Duration, cfg Config) dumps {
	step := cfg.Every
	if cfg.Cumulative {
		step = min(firstStep, step)
	}
	return dumps{now + step, step, cfg.Every}
}

// done schedules the next dump after now.
func (d *dumps) done(now time.Duration) {
	d.step = min(2*d.step, d.every)
	for d.next <= now {
		d.next += d.step
	}
}

// passing reports whether the kernel had no memory or no time, so that the same call may succeed later.
func passing(err error) bool {
	for _, errno := range []error{syscall.EAGAIN, syscall.ENOBUFS, syscall.ENOMEM, syscall.EINTR} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// namespaceLeft reports whether the process has ended through which another network namespace was entered. The watch
// must end then, since its socket would keep the namespace alive.
func (w *watcher) namespaceLeft() bool {
	if w.cfg.Namespace == "" {
		return false
	}
	now, err := os.Stat(w.cfg.Namespace)
	if err == nil && (w.owners.namespace == nil || os.SameFile(now, w.owners.namespace)) {
		return false
	}
	w.unread = append(w.unread, verdict.Note{Code: verdict.NamespaceEnded,
		Values: verdict.Values{"at_s": w.now().Seconds()}})
	return true
}

// show calls each with the view of the period and begins the next one.
func (w *watcher) show(each func(*View) error) (err error) {
	now := w.now()
	v := &View{At: now, Length: now - w.began, Took: w.took, Unread: slices.Clone(w.unread), Anonymized: w.cfg.Anonymize}
	if w.missed > 0 {
		v.Unread = append(v.Unread, counted(verdict.DumpsFailed, "dumps", w.missed))
	}
	if w.within > 0 { // both ends of each are sockets of this host
		v.Unread = append(v.Unread, counted(verdict.WithinHost, "connections", (w.within+1)/2))
	}
	w.account.look(v, v.Length, &w.cfg, w.owner)
	v.Lost, err = w.sockets.Ends.Dropped()
	if err != nil {
		return err
	}
	if w.netns != nil {
		w.netns.look(w, v)
		v.Unread = append(v.Unread, w.netns.unread()...)
	}
	if err := v.addTurns(w.cfg.Segments); err != nil {
		return err
	}
	v.finish()
	w.findFillers(v)
	w.programs.look(v, w.cfg.Cumulative)
	w.began = now
	return each(v)
}

func (w *watcher) open() (err error) {
	w.sockets, err = sockdiag.Follow(w.cfg.Namespace)
	if err != nil {
		return err
	}
	w.account.ceilings = readCeilings(w.cfg.Namespace)
	if os.Geteuid() != 0 {
		w.unread = append(w.unread, verdict.Note{Code: verdict.OtherUsersPrograms})
	}
	if !w.cfg.Namespaces {
		w.unread = append(w.unread, verdict.Note{Code: verdict.OtherNamespaces})
		return nil
	}
	w.owners.namespace = nil // processes of all are of interest
	w.netns, err = newNetnsWatchers()
	if err != nil {
		w.sockets.Close()
	}
	return err
}

func (w *watcher) close() {
	if w.netns != nil {
		w.netns.drop(func(*netnsWatcher) bool { return true })
	}
	w.programs.watch.Close()
	w.sockets.Close()
	w.owners.close()
	w.activeSockets.close()
}

func (w *watcher) now() time.Duration { return time.Since(w.start) }

// dump reads every connection that may have changed, after the ends that were reported before.
func (w *watcher) dump() error {
	if err := w.drainDestroyEvents(); err != nil {
		return err
	}
	began := w.now()
	if w.activeSockets.due(w) && w.readMoved() {
		w.account.MarkChecked(began)
		w.took = w.now() - began
		return w.drainDestroyEvents()
	}
	w.account.BeginDump(began)
	if err := w.readAll(); err != nil {
		return err
	}
	w.took = w.now() - began
	if err := w.drainDestroyEvents(); err != nil {
		return err
	}
	w.activeSockets.dumped(w.account.EndDump(began))
	return nil
}

// states are those in which a socket has counters: in FIN-WAIT-2 it has sent all, and its end is not reported yet.
var states = sockdiag.Connected | sockdiag.Of(sockdiag.FinWait2)

// readAll reads every connection.
func (w *watcher) readAll() error {
	w.activeSockets.recheck = w.activeSockets.recheck[:0]
	w.within = 0
	w.dumpAt = w.now()
	if err := w.sockets.Dump(states, ask, w.read); err != nil {
		return fmt.Errorf("read the connections: %w", err)
	}
	return nil
}

// drainDestroyEvents takes the kernel's last records of the sockets that ended.
func (w *watcher) drainDestroyEvents() error {
	return w.sockets.Ends.Take(func(s *sockdiag.Socket) {
		if len(s.Info) == 0 {
			return
		}
		// A followed connection is recognised by its cookie: a socket that its program reset (SO_LINGER of 0) has no far
		// end any more. A listener has none either, and no path MTU.
		t := w.snapshot(s, w.now())
		if !w.account.Knows(t.Cookie) {
			if !w.cfg.Match.ends(t.Local, t.Remote) || t.Remote.Port() == 0 && socket.HandshakeLinux(s.Info).PathMTU == 0 {
				return
			}
		}
		if c := w.account.End(t); c != nil && c.Handshake == nil {
			c.Handshake = w.handshake(s)
		}
	})
}
