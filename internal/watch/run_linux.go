package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const (
	ask     = sockdiag.AskInfo | sockdiag.AskCongestion | sockdiag.AskMemory
	askFast = sockdiag.AskInfo | sockdiag.AskMemory
	room    = 8 << 20 // for 6,500 ends between two looks

	firstStep = 100 * time.Millisecond
)

// watcher is the loop's state. It runs on one goroutine.
type watcher struct {
	cfg     Config
	asking  *sockdiag.Conn
	ends    *sockdiag.Ends
	account *Account
	owners  *owners
	start   time.Time
	ids     map[uint64]sockdiag.ID // of the connections that stand
	fast    []sockdiag.ID
	names   map[string]string // congestion controls: one string each
	took    time.Duration
	unread  []string
}

func run(ctx context.Context, cfg Config, each func(*View) error) (err error) {
	w := &watcher{cfg: cfg, account: NewAccount(), owners: newOwners(&cfg.Match), start: time.Now(),
		ids: map[uint64]sockdiag.ID{}, names: map[string]string{}}
	if err := w.open(); err != nil {
		return err
	}
	defer w.close()
	// Twice: a dump may miss a socket, which would then look as if it were born since.
	if err := errors.Join(w.readAll(), w.dump()); err != nil {
		return err
	}
	w.choose()
	w.account.Period(func(*Connection) {})
	tick := time.NewTicker(cfg.Sample)
	defer tick.Stop()
	// Of a whole span the first dumps follow soon, the next after twice the time: what begins
	// just after the watch is sampled from then on.
	step := cfg.Every
	if cfg.Cumulative {
		step = min(firstStep, step)
	}
	began, next := w.now(), w.now()+step
	for {
		over := false
		select {
		case <-ctx.Done():
			over = true
		case <-tick.C:
		}
		if err := w.sample(); err != nil {
			return err
		}
		now := w.now()
		if !over && now < next {
			continue
		}
		if err := w.dump(); err != nil {
			return err
		}
		if over || !cfg.Cumulative { // of a whole span, the last view is the one
			if err := w.show(began, each); err != nil {
				return err
			}
			began = w.now()
		}
		if over {
			return ctx.Err()
		}
		w.choose()
		step = min(2*step, cfg.Every)
		for next <= w.now() {
			next += step
		}
	}
}

// show calls each with what was seen since a period began.
func (w *watcher) show(began time.Duration, each func(*View) error) (err error) {
	now := w.now()
	v := &View{At: now, Length: now - began, Took: w.took, Unread: w.unread}
	w.account.look(v, &w.cfg, w.owner)
	if v.Lost, err = w.ends.Dropped(); err != nil {
		return err
	}
	return each(v)
}

func (w *watcher) open() (err error) {
	if w.cfg.Namespace == "" {
		w.asking, err = sockdiag.Open()
	} else {
		w.asking, err = sockdiag.OpenIn(w.cfg.Namespace)
	}
	if err != nil {
		return err
	}
	if w.cfg.Namespace == "" {
		w.ends, err = sockdiag.OpenEnds(room)
	} else {
		w.ends, err = sockdiag.OpenEndsIn(w.cfg.Namespace, room)
	}
	if err != nil {
		w.asking.Close()
		return err
	}
	if os.Geteuid() != 0 {
		w.unread = append(w.unread, "programs of other users (needs root)")
	}
	w.unread = append(w.unread, "other network namespaces, such as containers'")
	return nil
}

func (w *watcher) close() {
	w.asking.Close()
	w.ends.Close()
}

func (w *watcher) now() time.Duration { return time.Since(w.start) }

// told turns the kernel's words into a reading.
func (w *watcher) told(s *sockdiag.Socket, at time.Duration) Told {
	t := Told{Cookie: s.Cookie, Local: s.Local, Remote: s.Remote, UID: s.UID, Inode: s.Inode, Cgroup: s.Cgroup,
		Unread: int64(s.ReadQueue), Unacked: int64(s.WriteQueue), Established: s.State == sockdiag.Established}
	if s.HasMemory {
		t.SendQueued, t.SendBuffer = int64(s.Memory.SendQueued), int64(s.Memory.SendBuffer)
		t.ReceiveBuffer = int64(s.Memory.ReceiveBuffer)
	}
	if len(s.Congestion) > 0 {
		name, ok := w.names[string(s.Congestion)]
		if !ok {
			name = string(s.Congestion)
			w.names[name] = name
		}
		t.Congestion = name
	}
	t.Sample = transfer.Sample{At: at}
	socket.DecodeLinux(s.Info, &t.Sample)
	t.Reordered = socket.ReorderedLinux(s.Info)
	return t
}

// dump reads every connection, after the ends that came before it.
func (w *watcher) dump() error {
	if err := w.takeEnds(); err != nil {
		return err
	}
	began := w.now()
	if err := w.readAll(); err != nil {
		return err
	}
	w.took = w.now() - began
	if err := w.takeEnds(); err != nil {
		return err
	}
	w.account.Dumped(began)
	for cookie := range w.ids {
		if w.account.Open(cookie) == nil {
			delete(w.ids, cookie)
		}
	}
	return nil
}

// states are those in which a socket still has an account to give: in FIN-WAIT-2 it has sent
// all, and its end is yet to be told.
var states = sockdiag.Connected | sockdiag.Of(sockdiag.FinWait2)

// readAll takes a reading of every connection.
func (w *watcher) readAll() error {
	err := w.asking.Dump(states, ask, sockdiag.Filter{}, func(s *sockdiag.Socket) {
		if len(s.Info) == 0 {
			return
		}
		t := w.told(s, w.now())
		if !w.cfg.Match.socket(&t) {
			return
		}
		c := w.account.Read(t)
		if c.Handshake == nil {
			c.Handshake = socket.HandshakeLinux(s.Info)
			w.ids[s.Cookie] = s.ID()
		}
	})
	if err != nil {
		return fmt.Errorf("read the connections: %w", err)
	}
	return nil
}

// takeEnds takes the kernel's last account of the sockets that ended.
func (w *watcher) takeEnds() error {
	return w.ends.Take(func(s *sockdiag.Socket) {
		if len(s.Info) == 0 {
			return
		}
		// One that was followed is, whatever its end says: a socket that its program reset
		// (SO_LINGER of 0) has no far end any more.
		if t := w.told(s, w.now()); w.account.Knows(t.Cookie) || w.cfg.Match.socket(&t) {
			if c := w.account.End(t); c != nil && c.Handshake == nil {
				c.Handshake = socket.HandshakeLinux(s.Info)
			}
			delete(w.ids, s.Cookie)
		}
	})
}

// sample looks up the connections of the fast tier.
func (w *watcher) sample() error {
	if err := w.takeEnds(); err != nil || len(w.fast) == 0 {
		return err
	}
	_, err := w.asking.Look(w.fast, askFast, func(s *sockdiag.Socket) {
		c := w.account.Open(s.Cookie)
		if c == nil || len(s.Info) == 0 {
			return
		}
		t := w.told(s, w.now())
		w.account.Read(t)
		c.sampled(c.Told, w.cfg.Window)
	})
	return err
}

// choose takes the connections into the fast tier that have moved most since it was called
// last; at first, and among those that moved nothing, in their lives.
func (w *watcher) choose() {
	type candidate struct {
		c            *Connection
		moved, total int64
	}
	var all []candidate
	for cookie := range w.ids {
		c := w.account.Open(cookie)
		if c == nil {
			continue
		}
		if w.cfg.Match.owned() {
			if c.Owner = w.owner(c); !w.cfg.Match.owner(c.Owner) {
				continue
			}
		}
		total := c.Sample.Acked + c.Sample.Received
		all = append(all, candidate{c, total - c.carried, total})
		c.carried = total
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.moved, a.moved), cmp.Compare(b.total, a.total), cmp.Compare(a.c.Cookie, b.c.Cookie))
	})
	w.fast = w.fast[:0]
	for i := range all {
		if i < mostSampled {
			w.fast = append(w.fast, w.ids[all[i].c.Cookie])
		} else {
			all[i].c.window = nil
		}
	}
}

func (w *watcher) owner(c *Connection) Owner {
	if c.Owner != (Owner{}) {
		return c.Owner
	}
	return w.owners.of(&c.Told, c.opened, w.now())
}
