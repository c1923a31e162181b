package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

const (
	// netnsEvery is the time between two looks for namespaces.
	netnsEvery = 5 * time.Second
	// netnsPart is the inverse of the share of a core for reading other namespaces: the kernel walks all sockets of the
	// host for each of them. Beyond that each is read less often.
	netnsPart = 100
)

// netnsWatchers are the other network namespaces with processes of this host. Each is watched through one process and
// left when its last process has ended: an open netlink socket would keep the namespace alive.
type netnsWatchers struct {
	own     os.FileInfo
	open    []*netnsWatcher // the one that waited longest first
	left    []*netnsWatcher // let go since the last view
	next    time.Duration
	gone    Totals // of those that were let go before
	lost    uint64 // the same of dropped reports of ends
	refused int    // namespaces that could not be entered
	hidden  int    // processes whose namespace this user may not know
}

// netnsWatcher watches one of them.
type netnsWatcher struct {
	*watcher
	is      os.FileInfo
	lives   bool   // a process is in it
	looked  bool   // in this period
	matched int    // by the last look
	lost    uint64 // dropped reports of ends
}

func newNetnsWatchers() (*netnsWatchers, error) {
	own, err := os.Stat("/proc/thread-self/ns/net")
	return &netnsWatchers{own: own}, err
}

// find enters new namespaces and leaves those without a process.
func (p *netnsWatchers) find(w *watcher) {
	p.next = w.now() + netnsEvery
	p.refused = 0
	p.hidden = 0
	for _, one := range p.open {
		one.lives = false
	}
	refused := map[uint64]bool{}
	pids, err := sockdiag.Processes()
	if err != nil {
		return
	}
	for _, pid := range pids {
		path := "/proc/" + strconv.Itoa(pid) + "/ns/net"
		is, err := os.Stat(path)
		if errors.Is(err, fs.ErrPermission) {
			p.hidden++
		}
		if err != nil || os.SameFile(is, p.own) || refused[inodeOf(is)] {
			continue
		}
		at := slices.IndexFunc(p.open, func(one *netnsWatcher) bool { return os.SameFile(is, one.is) })
		switch {
		case at < 0:
			one := &netnsWatcher{is: is, lives: true}
			if one.enter(w, path) != nil {
				refused[inodeOf(is)] = true
				continue
			}
			p.open = append(p.open, one)
		case !p.open[at].lives:
			p.open[at].lives = true
			p.open[at].cfg.Namespace = path
		}
	}
	p.refused = len(refused)
	p.drop(func(one *netnsWatcher) bool { return !one.lives })
}

// enter opens a namespace by the path of one of its processes.
func (one *netnsWatcher) enter(w *watcher, path string) error {
	cfg := w.cfg
	cfg.Namespace = path
	cfg.Namespaces = false
	cfg.Sampled = -1 // the fast tier is chosen among all namespaces
	one.watcher = newWatcher(cfg)
	one.owners.close()
	one.start = w.start
	one.owners = w.owners
	one.programs = w.programs
	one.fast.spare = w.fast.spare
	one.account.shortage = w.account.shortage
	if err := one.open(); err != nil {
		return err
	}
	if !one.stays() { // the PID was reused meanwhile
		one.sockets.Close()
		return fmt.Errorf("%s: it has ended", path)
	}
	if err := one.begin(); err != nil {
		one.sockets.Close()
		return err
	}
	return nil
}

// stays reports whether the process by which it was entered still runs.
func (one *netnsWatcher) stays() bool {
	now, err := os.Stat(one.cfg.Namespace)
	return err == nil && os.SameFile(now, one.is)
}

// drop closes the namespaces for which is returns true. Their last sums are in the next view.
func (p *netnsWatchers) drop(is func(*netnsWatcher) bool) {
	p.open = slices.DeleteFunc(p.open, func(one *netnsWatcher) bool {
		if !is(one) {
			return false
		}
		_ = one.drainDestroyEvents() // connections whose end is not read remain unfinished
		one.lost, _ = one.sockets.Ends.Dropped()
		one.sockets.Close()
		one.looked = true
		p.left = append(p.left, one)
		return true
	})
}

// read reads the namespaces whose turn it is.
func (p *netnsWatchers) read(w *watcher, all bool) {
	now := w.now()
	if now >= p.next || slices.ContainsFunc(p.open, func(one *netnsWatcher) bool { return !one.stays() }) {
		p.find(w)
	}
	n := 0
	for end := w.now() + w.cfg.Every/netnsPart; n < len(p.open) && (all || n == 0 || w.now() < end); n++ {
		one := p.open[n]
		err := one.dump()
		one.lives = err == nil || passing(err)
		one.looked = err == nil
	}
	p.open = append(p.open[n:], p.open[:n]...)
	p.drop(func(one *netnsWatcher) bool { return !one.lives })
}

// sample looks up the connections of the fast tier.
func (p *netnsWatchers) sample() {
	for _, one := range p.open {
		err := one.sample()
		one.lives = err == nil || passing(err)
	}
	p.drop(func(one *netnsWatcher) bool { return !one.lives })
}

// look adds their connections to a view.
func (p *netnsWatchers) look(w *watcher, v *View) {
	before := p.gone
	for _, one := range slices.Concat(p.open, p.left) {
		one.account.names = w.account.names
		if !one.looked {
			v.Totals.add(one.account.totals)
			v.Standing += one.account.Len()
			v.Matched += one.matched
			continue
		}
		matched := v.Matched
		now := w.now()
		one.account.look(v, now-one.began, &w.cfg, one.owner)
		one.began = now
		one.looked = w.cfg.Cumulative
		one.matched = v.Matched - matched
		if lost, err := one.sockets.Ends.Dropped(); err == nil {
			one.lost = lost
		}
	}
	for _, one := range p.open {
		v.Lost += one.lost
	}
	for _, one := range p.left { // the ends of their open connections are not known
		unfinished := Totals{Unfinished: int64(one.account.Len())}
		v.Totals.add(unfinished)
		v.Standing -= one.account.Len()
		p.gone.add(one.account.totals)
		p.gone.add(unfinished)
		p.lost += one.lost
	}
	v.Totals.add(before)
	v.Lost += p.lost
	p.left = nil
}

// unread returns what cannot be seen.
func (p *netnsWatchers) unread() (unseen []verdict.Note) {
	if p.refused > 0 {
		unseen = append(unseen, counted(verdict.NamespacesRefused, "namespaces", p.refused))
	}
	if p.hidden > 0 {
		unseen = append(unseen, counted(verdict.NamespacesHidden, "processes", p.hidden))
	}
	return unseen
}

// SeesNamespaces reports whether this process is root in the host's own network namespace, from where it may look
// into those of containers.
func SeesNamespaces() bool {
	own, err := os.Readlink("/proc/self/ns/net")
	hosts, failed := os.Readlink("/proc/1/ns/net") // only root may read it
	if failed != nil {
		hosts, failed = os.Readlink("/proc/2/ns/net") // some hosts guard the first process; kthreadd is not guarded
	}
	return err == nil && failed == nil && own == hosts && os.Geteuid() == 0
}
