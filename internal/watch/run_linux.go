package watch

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
	"github.com/fullpipe-net/fullpipe/internal/verdict/watched"
)

const (
	ask     = sockdiag.AskInfo | sockdiag.AskCongestion | sockdiag.AskMemory
	askFast = sockdiag.AskInfo | sockdiag.AskMemory

	firstStep = 100 * time.Millisecond

	mostHandshakes = 1024 // that are shared
)

// watcher is the loop's state. It runs on one goroutine.
type watcher struct {
	cfg        Config
	sockets    *sockdiag.Follower
	account    *Account
	choices    uint32 // how often the fast tier was chosen
	owners     *owners
	start      time.Time
	began      time.Duration // of the period
	fast       fast
	movers     movers
	places     *places           // nil: other network namespaces are not looked into
	names      map[string]string // congestion controls: one string each
	handshakes map[transfer.Handshake]*transfer.Handshake
	seed       maphash.Seed
	words      []byte        // what a print is of
	reading    time.Duration // when the last one of all began
	took       time.Duration
	missed     int // readings
	unread     []string
}

func newWatcher(cfg Config) *watcher {
	account := NewAccount()
	account.shortage = &shortage{}
	return &watcher{cfg: cfg, account: account, owners: newOwners(&cfg.Match, cfg.Namespace), start: time.Now(),
		fast: fast{spare: &[]watched.Samples{}}, names: map[string]string{},
		handshakes: map[transfer.Handshake]*transfer.Handshake{}, seed: maphash.MakeSeed()}
}

// begin reads what stands before anything is shown. All of that is kept, so to collect garbage meanwhile would
// only take time.
func (w *watcher) begin() error {
	const rarely = 400
	defer debug.SetGCPercent(debug.SetGCPercent(rarely))
	// Twice: a dump may miss a socket, which would then look as if it were born since.
	if err := errors.Join(w.readAll(), w.dump()); err != nil {
		return err
	}
	if w.places != nil {
		w.places.find(w)
	}
	w.choose()
	w.account.Period(func(*Connection) {})
	w.began = w.now()
	return nil
}

// period reads all and shows what moved since the last; nil: it goes on. What the kernel cannot tell for
// a moment makes the period longer.
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
	if w.places != nil {
		w.places.read(w, w.cfg.Cumulative && each != nil)
	}
	if each == nil {
		w.name()
	} else if err := w.show(each); err != nil {
		return err
	}
	w.choose()
	return nil
}

// name finds the programs of connections that may have ended when they are shown.
func (w *watcher) name() {
	w.account.moved(func(c *Connection) {
		if owner := w.owner(c); owner.PID > 0 {
			c.Owner = owner
		}
	})
	if w.places != nil {
		for _, one := range w.places.open {
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
		if w.places != nil {
			w.places.sample()
		}
		now := w.now()
		if short := w.account.shortage; now >= short.next {
			short.note(sockdiag.MemoryShort(), now)
		}
		if !over && now < due.next {
			continue
		}
		show := each
		if cfg.Cumulative && !over { // of a whole span, the last view is the one
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

// dumps is when a watcher reads all connections.
type dumps struct{ next, step, every time.Duration }

// newDumps returns those of a watch that begins now. Of a whole span the first dumps follow soon, the next after
// twice the time: what begins just after the watch is sampled from then on.
func newDumps(now time.Duration, cfg Config) dumps {
	step := cfg.Every
	if cfg.Cumulative {
		step = min(firstStep, step)
	}
	return dumps{now + step, step, cfg.Every}
}

// done chooses the time after now of the next dump.
func (d *dumps) done(now time.Duration) {
	d.step = min(2*d.step, d.every)
	for d.next <= now {
		d.next += d.step
	}
}

// passing says that the kernel had no memory or no time for an answer, and may have when asked again.
func passing(err error) bool {
	for _, errno := range []error{syscall.EAGAIN, syscall.ENOBUFS, syscall.ENOMEM, syscall.EINTR} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// namespaceLeft says that the process has ended through which another network namespace was entered,
// and that it was so until now. What asks there keeps that namespace alive, so it must not stay.
func (w *watcher) namespaceLeft() bool {
	if w.cfg.Namespace == "" {
		return false
	}
	now, err := os.Stat(w.cfg.Namespace)
	if err == nil && (w.owners.namespace == nil || os.SameFile(now, w.owners.namespace)) {
		return false
	}
	w.unread = append(w.unread, fmt.Sprintf("what came after %.1f s: the process had ended that its network "+
		"namespace was entered by", w.now().Seconds()))
	return true
}

// show calls each with what was seen since the period began, and begins the next.
func (w *watcher) show(each func(*View) error) (err error) {
	now := w.now()
	v := &View{At: now, Length: now - w.began, Took: w.took, Unread: slices.Clone(w.unread), Anonymized: w.cfg.Anonymize}
	if w.missed > 0 {
		v.Unread = append(v.Unread, fmt.Sprintf("%d readings, which the kernel had no memory or no time for", w.missed))
	}
	w.account.look(v, v.Length, &w.cfg, w.owner)
	if v.Lost, err = w.sockets.Ends.Dropped(); err != nil {
		return err
	}
	if w.places != nil {
		w.places.look(w, v)
		v.Unread = append(v.Unread, w.places.unread()...)
	}
	v.finish()
	w.began = now
	return each(v)
}

func (w *watcher) open() (err error) {
	if w.sockets, err = sockdiag.Follow(w.cfg.Namespace); err != nil {
		return err
	}
	w.account.ceilings = readCeilings(w.cfg.Namespace)
	if os.Geteuid() != 0 {
		w.unread = append(w.unread, "programs of other users (needs root)")
	}
	if !w.cfg.Namespaces {
		w.unread = append(w.unread, "other network namespaces, such as containers'")
		return nil
	}
	w.owners.namespace = nil // processes of all are of interest
	if w.places, err = newPlaces(); err != nil {
		w.sockets.Close()
	}
	return err
}

func (w *watcher) close() {
	if w.places != nil {
		w.places.drop(func(*place) bool { return true })
	}
	w.sockets.Close()
	w.owners.close()
	w.movers.close()
}

func (w *watcher) now() time.Duration { return time.Since(w.start) }

// dump takes a reading of every connection that may have changed, after the ends that came before it.
func (w *watcher) dump() error {
	if err := w.takeEnds(); err != nil {
		return err
	}
	began := w.now()
	if w.movers.due(w) && w.readMoved() {
		w.account.Looked(began)
		w.took = w.now() - began
		return w.takeEnds()
	}
	w.account.Dumping(began)
	if err := w.readAll(); err != nil {
		return err
	}
	w.took = w.now() - began
	if err := w.takeEnds(); err != nil {
		return err
	}
	w.movers.dumped(w.account.Dumped(began))
	return nil
}

// states are those in which a socket still has an account to give: in FIN-WAIT-2 it has sent
// all, and its end is yet to be told.
var states = sockdiag.Connected | sockdiag.Of(sockdiag.FinWait2)

// readAll takes a reading of every connection.
func (w *watcher) readAll() error {
	w.movers.restless = w.movers.restless[:0]
	w.reading = w.now()
	if err := w.sockets.Dump(states, ask, w.read); err != nil {
		return fmt.Errorf("read the connections: %w", err)
	}
	return nil
}

// read takes a reading of one connection, unless nothing has changed since the one before.
func (w *watcher) read(s *sockdiag.Socket) {
	if len(s.Info) == 0 {
		return
	}
	w.movers.note(s)
	print := w.print(s)
	if w.account.Still(s.Cookie, print, w.reading) {
		return
	}
	t := w.told(s, w.now())
	if !w.cfg.Match.ends(t.Local, t.Remote) {
		return
	}
	c := w.account.Read(t)
	c.print = print
	if c.Handshake == nil {
		c.Handshake = w.handshake(s)
		c.id = s.ID()
	}
}

// takeEnds takes the kernel's last account of the sockets that ended.
func (w *watcher) takeEnds() error {
	return w.sockets.Ends.Take(func(s *sockdiag.Socket) {
		if len(s.Info) == 0 {
			return
		}
		// One that was followed is, whatever its end says: a socket that its program reset
		// (SO_LINGER of 0) has no far end any more. Neither has a listener, which never had a path.
		t := w.told(s, w.now())
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
