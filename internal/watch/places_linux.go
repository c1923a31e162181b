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
)

const (
	// placesEvery is the time between two looks for namespaces.
	placesEvery = 5 * time.Second
	// placesPart is the part of a core that reading the other namespaces may take in the long run: the kernel
	// walks all sockets of the host for each of them. Beyond that each has its turn less often.
	placesPart = 100
)

// places are the other network namespaces in which processes of this host run. Each is watched through
// one of them, and let go when none is left: what asks there would keep it alive.
type places struct {
	own     os.FileInfo
	open    []*place // who has waited longest first
	left    []*place // let go since the last view
	next    time.Duration
	gone    Totals // of those that were let go before
	lost    uint64 // the same, ends that were not told
	refused int    // namespaces that could not be entered
	hidden  int    // processes whose namespace this user may not know
}

// place is one of them.
type place struct {
	*watcher
	is      os.FileInfo
	lives   bool   // a process is in it
	looked  bool   // in this period
	matched int    // by the last look
	lost    uint64 // ends that were not told
}

func newPlaces() (*places, error) {
	own, err := os.Stat("/proc/thread-self/ns/net")
	return &places{own: own}, err
}

// find enters namespaces that are new and lets go those that nobody is in any more.
func (p *places) find(w *watcher) {
	p.next = w.now() + placesEvery
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
		at := slices.IndexFunc(p.open, func(one *place) bool { return os.SameFile(is, one.is) })
		switch {
		case at < 0:
			one := &place{is: is, lives: true}
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
	p.drop(func(one *place) bool { return !one.lives })
}

// enter opens a namespace by a process's path to it.
func (one *place) enter(w *watcher, path string) error {
	cfg := w.cfg
	cfg.Namespace = path
	cfg.Namespaces = false
	cfg.Sampled = -1 // who is sampled is chosen among all
	one.watcher = newWatcher(cfg)
	one.owners.close()
	one.start = w.start
	one.owners = w.owners
	one.fast.spare = w.fast.spare
	one.account.shortage = w.account.shortage
	if err := one.open(); err != nil {
		return err
	}
	if !one.stays() { // the number became another process's meanwhile
		one.sockets.Close()
		return fmt.Errorf("%s: it has ended", path)
	}
	if err := one.begin(); err != nil {
		one.sockets.Close()
		return err
	}
	return nil
}

// stays says that the process by which it was entered is still there.
func (one *place) stays() bool {
	now, err := os.Stat(one.cfg.Namespace)
	return err == nil && os.SameFile(now, one.is)
}

// drop lets those go for which is holds. What they told last is in the next view.
func (p *places) drop(is func(*place) bool) {
	p.open = slices.DeleteFunc(p.open, func(one *place) bool {
		if !is(one) {
			return false
		}
		_ = one.takeEnds() // what it cannot tell any more stays unfinished
		one.lost, _ = one.sockets.Ends.Dropped()
		one.sockets.Close()
		one.looked = true
		p.left = append(p.left, one)
		return true
	})
}

// read takes a reading of those whose turn it is.
func (p *places) read(w *watcher, all bool) {
	now := w.now()
	if now >= p.next || slices.ContainsFunc(p.open, func(one *place) bool { return !one.stays() }) {
		p.find(w)
	}
	n := 0
	for end := w.now() + w.cfg.Every/placesPart; n < len(p.open) && (all || n == 0 || w.now() < end); n++ {
		one := p.open[n]
		err := one.dump()
		one.lives = err == nil || passing(err)
		one.looked = err == nil
	}
	p.open = append(p.open[n:], p.open[:n]...)
	p.drop(func(one *place) bool { return !one.lives })
}

// sample looks up the connections of the fast tier.
func (p *places) sample() {
	for _, one := range p.open {
		err := one.sample()
		one.lives = err == nil || passing(err)
	}
	p.drop(func(one *place) bool { return !one.lives })
}

// look adds to a view what was seen in them.
func (p *places) look(w *watcher, v *View) {
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
	for _, one := range p.left { // what stood in them has no end that is known
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

// unread says what cannot be seen.
func (p *places) unread() (what []string) {
	if p.refused > 0 {
		what = append(what, fmt.Sprintf("other network namespaces that could not be entered (%d; needs root)", p.refused))
	}
	if p.hidden > 0 {
		what = append(what, fmt.Sprintf("the network namespaces of processes that may not be looked at (%d)", p.hidden))
	}
	return what
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
