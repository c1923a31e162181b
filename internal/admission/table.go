package admission

import (
	"errors"
	"io"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// The resources that a Table counts, as indices of a Load.
const (
	Places  = iota // entries
	Streams        // data connections
	Buffers        // bytes of socket buffers
	resources
)

// Load is an amount of each resource.
type Load [resources]int64

func (a Load) plus(b Load) Load {
	for r := range a {
		a[r] += b[r]
	}
	return a
}

func (a Load) minus(b Load) Load {
	for r := range a {
		a[r] -= b[r]
	}
	return a
}

// exceeds returns the first resource of which a has more than the limit; -1 where none. A
// limit of 0 is no limit.
func (a Load) exceeds(limit Load) int {
	for r := range a {
		if limit[r] > 0 && a[r] > limit[r] {
			return r
		}
	}
	return -1
}

// Limits bound a Table; zero values do not.
type Limits struct {
	Total, PerHost Load
	// Kept is how many places of one host are safe from other hosts while they are active.
	Kept int64
}

// Entry is what one client takes.
type Entry struct {
	Host netip.Prefix
	Rank Rank
	Load Load // Admit counts one place, whatever Load says
	// ActiveUntil is when the entry becomes idle without further progress, which Extend
	// reports; the zero time is never.
	ActiveUntil time.Time
	// Pinned entries never make room.
	Pinned bool
	// Evict ends the client whose entry made room. It must not call the Table.
	Evict func()
}

func (e *Entry) idle(now time.Time) bool {
	return !e.ActiveUntil.IsZero() && !now.Before(e.ActiveUntil)
}

// Table holds the entries of one kind. When a newcomer does not fit, the busiest host makes
// room: the one that has most of the missing resource. Idle entries go first, the longest idle
// one before others, if their host has at least as much as the newcomer's host would have or is
// the same. Active entries go, the oldest one first, if their host has more than the newcomer's
// host would have, and more than Kept places. Entries of a lower rank go before all others, and
// entries of a higher rank never.
type Table struct {
	Limits Limits

	mu      sync.Mutex // guards what follows, and what Entry says of progress
	entries []*Entry   // the oldest first
	total   Load
	hosts   map[netip.Prefix]Load
}

// Errors of Admit and Check.
var (
	ErrHostFull = errors.New("the client's host has as many places as it may")
	ErrFull     = errors.New("all places are taken")
)

// Admit enters e, and evicts those that make room for it. It returns ErrHostFull or ErrFull
// where too few would.
func (t *Table) Admit(e *Entry, now time.Time) error {
	e.Load[Places] = 1
	t.mu.Lock()
	evicted, err := t.plan(e, now)
	if err == nil {
		for _, out := range evicted {
			t.remove(out)
		}
		if t.hosts == nil {
			t.hosts = map[netip.Prefix]Load{}
		}
		t.entries = append(t.entries, e)
		t.total = t.total.plus(e.Load)
		t.hosts[e.Host] = t.hosts[e.Host].plus(e.Load)
	}
	t.mu.Unlock()
	if err == nil {
		for _, out := range evicted {
			out.Evict()
		}
	}
	return err
}

// Check returns what Admit would, and changes nothing.
func (t *Table) Check(e *Entry, now time.Time) error {
	e.Load[Places] = 1
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := t.plan(e, now)
	return err
}

// MaxPending is how many connections a server keeps of clients that have proven nothing yet, where
// the process may open enough files.
const MaxPending = 256

// Pending enters a connection that has proven nothing yet, and closes the one that makes room for
// it. done takes it out.
func (t *Table) Pending(conn io.Closer, host netip.Prefix, now time.Time) (done func()) {
	e := &Entry{Host: host, ActiveUntil: now, Evict: func() { conn.Close() }}
	if t.Admit(e, now) != nil {
		conn.Close()
	}
	return func() { t.Release(e) }
}

// Release takes e out; one that was evicted is out already.
func (t *Table) Release(e *Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(e)
}

// Extend reports progress: e is active until a time, or with the zero time for good.
func (t *Table) Extend(e *Entry, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.ActiveUntil = until
}

// Pin sets whether e is pinned.
func (t *Table) Pin(e *Entry, pinned bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.Pinned = pinned
}

// Of returns what a host has.
func (t *Table) Of(host netip.Prefix) Load {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hosts[host]
}

// remove takes e out if it is in. The caller holds mu.
func (t *Table) remove(e *Entry) {
	i := slices.Index(t.entries, e)
	if i < 0 {
		return
	}
	t.entries = slices.Delete(t.entries, i, i+1)
	t.total = t.total.minus(e.Load)
	t.hosts[e.Host] = t.hosts[e.Host].minus(e.Load)
	if t.hosts[e.Host] == (Load{}) {
		delete(t.hosts, e.Host)
	}
}

// plan returns the entries that make room for e. The caller holds mu.
func (t *Table) plan(e *Entry, now time.Time) (evicted []*Entry, err error) {
	s := search{newcomer: e, now: now, limits: t.Limits, hosts: t.hosts}
	total := t.total.plus(e.Load)
	own := false
	for {
		s.mine = s.hosts[e.Host].plus(e.Load)
		err = ErrHostFull
		s.resource = s.mine.exceeds(t.Limits.PerHost)
		own = true
		if s.resource < 0 {
			s.resource = total.exceeds(t.Limits.Total)
			own = false
			err = ErrFull
		}
		if s.resource < 0 {
			return evicted, nil
		}
		out := s.best(t.entries, evicted, own)
		if out == nil {
			return nil, err
		}
		if len(evicted) == 0 {
			s.hosts = maps.Clone(t.hosts)
		}
		evicted = append(evicted, out)
		total = total.minus(out.Load)
		s.hosts[out.Host] = s.hosts[out.Host].minus(out.Load)
	}
}

// search is the choice of an entry that makes room.
type search struct {
	newcomer *Entry
	now      time.Time
	limits   Limits
	hosts    map[netip.Prefix]Load // what each host has
	mine     Load                  // what the newcomer's host would have
	resource int                   // of which there is too little
}

// The order in which entries make room.
const (
	lowerRank = iota
	isIdle
	isActive
	staysIn
)

// best returns the entry that makes room, of those that were not evicted already; own admits
// those of the newcomer's host alone. nil: there is none.
func (s *search) best(entries, evicted []*Entry, own bool) (best *Entry) {
	class := staysIn
	most := int64(0)
	for _, e := range entries {
		if own && e.Host != s.newcomer.Host || slices.Contains(evicted, e) {
			continue
		}
		c := s.class(e)
		has := s.has(e.Host)
		switch {
		case c == staysIn || c > class, c == class && has < most:
		case c < class, has > most, c == isIdle && e.ActiveUntil.Before(best.ActiveUntil):
			best = e
			class = c
			most = has
		}
	}
	return best
}

// has returns what a host has of the missing resource, with what the newcomer wants.
func (s *search) has(host netip.Prefix) int64 {
	if host == s.newcomer.Host {
		return s.mine[s.resource]
	}
	return s.hosts[host][s.resource]
}

// class returns how readily an entry makes room for the newcomer.
func (s *search) class(e *Entry) int {
	same := e.Host == s.newcomer.Host
	has := s.has(e.Host)
	mine := s.mine[s.resource]
	switch {
	case e.Pinned, e.Rank > s.newcomer.Rank, e.Load[s.resource] == 0:
		return staysIn
	case e.Rank < s.newcomer.Rank:
		return lowerRank
	case e.idle(s.now) && (same || has >= mine):
		return isIdle
	case !same && has > mine && s.hosts[e.Host][Places] > s.limits.Kept:
		return isActive
	}
	return staysIn
}
