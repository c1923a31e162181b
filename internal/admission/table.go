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
	Slots   = iota // entries
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

// exceeds returns the first resource that exceeds the limit, -1 for none. A limit of 0 means unlimited.
func (a Load) exceeds(limit Load) int {
	for r := range a {
		if limit[r] > 0 && a[r] > limit[r] {
			return r
		}
	}
	return -1
}

// Limits are the limits of a Table. Zero means unlimited.
type Limits struct {
	Total, PerHost Load
	// ProtectedPerHost is the number of a host's active slots that other hosts cannot evict.
	ProtectedPerHost int64
}

// Entry is a client's use of resources.
type Entry struct {
	Host netip.Prefix
	Rank Rank
	Load Load // Admit always counts one slot
	// ActiveUntil is when the entry becomes idle unless Extend reports progress; zero: never.
	ActiveUntil time.Time
	// Pinned entries are never evicted.
	Pinned bool
	// Evict ends the evicted client. It must not call the Table.
	Evict func()
}

func (e *Entry) idle(now time.Time) bool {
	return !e.ActiveUntil.IsZero() && !now.Before(e.ActiveUntil)
}

// Table has the entries of one kind. For a newcomer that does not fit, it evicts entries of the host with most of
// the missing resource. Idle entries go first, the longest idle one before others, if their host has at least as
// much as the newcomer's host would have, or is the same. Active entries go, the oldest first
type Table struct {
	Limits Limits

	mu      sync.Mutex // guards the fields below and ActiveUntil
	entries []*Entry   // oldest first
	total   Load
	hosts   map[netip.Prefix]Load
}

// Errors of Admit and Check.
var (
	ErrHostFull = errors.New("the client's host has as many places as it may")
	ErrFull     = errors.New("all places are taken")
)

// Admit adds e and evicts entries to make space. It returns ErrHostFull or ErrFull if it cannot evict enough.
func (t *Table) Admit(e *Entry, now time.Time) error {
	e.Load[Slots] = 1
	t.mu.Lock()
	evicted, err := t.chooseEvictions(e, now)
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

// Check returns what Admit would return and changes nothing.
func (t *Table) Check(e *Entry, now time.Time) error {
	e.Load[Slots] = 1
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := t.chooseEvictions(e, now)
	return err
}

// MaxPending is the number of connections that have not authenticated yet, if the process may open enough files.
const MaxPending = 256

// Pending adds a connection that has not authenticated yet and closes the evicted one. done removes it.
func (t *Table) Pending(conn io.Closer, host netip.Prefix, now time.Time) (done func()) {
	e := &Entry{Host: host, ActiveUntil: now, Evict: func() { conn.Close() }}
	if t.Admit(e, now) != nil {
		conn.Close()
	}
	return func() { t.Release(e) }
}

// Release removes e unless it was evicted.
func (t *Table) Release(e *Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(e)
}

// Extend sets until when e is active; zero: forever.
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

// LoadOf returns a host's load.
func (t *Table) LoadOf(host netip.Prefix) Load {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hosts[host]
}

// remove removes e if present. The caller has locked mu.
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

// chooseEvictions returns the entries to evict for e. The caller has locked mu.
func (t *Table) chooseEvictions(e *Entry, now time.Time) (evicted []*Entry, err error) {
	s := evictionSearch{newcomer: e, now: now, limits: t.Limits, hosts: t.hosts}
	total := t.total.plus(e.Load)
	own := false
	for {
		s.newcomerLoad = s.hosts[e.Host].plus(e.Load)
		err = ErrHostFull
		s.resource = s.newcomerLoad.exceeds(t.Limits.PerHost)
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

// evictionSearch is the choice of an entry to evict.
type evictionSearch struct {
	newcomer     *Entry
	now          time.Time
	limits       Limits
	hosts        map[netip.Prefix]Load // load of each host
	newcomerLoad Load                  // load of the newcomer's host with the newcomer
	resource     int                   // the missing one
}

// Entries are evicted in this order.
const (
	lowerRank = iota
	isIdle
	isActive
	notEvictable
)

// best returns the next entry to evict, or nil. With own, only entries of the newcomer's host qualify.
func (s *evictionSearch) best(entries, evicted []*Entry, own bool) (best *Entry) {
	class := notEvictable
	most := int64(0)
	for _, e := range entries {
		if own && e.Host != s.newcomer.Host || slices.Contains(evicted, e) {
			continue
		}
		c := s.class(e)
		has := s.loadOf(e.Host)
		switch {
		case c == notEvictable || c > class, c == class && has < most:
		case c < class, has > most, c == isIdle && e.ActiveUntil.Before(best.ActiveUntil):
			best = e
			class = c
			most = has
		}
	}
	return best
}

// loadOf returns a host's load of the missing resource, with the newcomer.
func (s *evictionSearch) loadOf(host netip.Prefix) int64 {
	if host == s.newcomer.Host {
		return s.newcomerLoad[s.resource]
	}
	return s.hosts[host][s.resource]
}

// class returns the eviction class of an entry for the newcomer.
func (s *evictionSearch) class(e *Entry) int {
	same := e.Host == s.newcomer.Host
	has := s.loadOf(e.Host)
	mine := s.newcomerLoad[s.resource]
	switch {
	case e.Pinned, e.Rank > s.newcomer.Rank, e.Load[s.resource] == 0:
		return notEvictable
	case e.Rank < s.newcomer.Rank:
		return lowerRank
	case e.idle(s.now) && (same || has >= mine):
		return isIdle
	case !same && has > mine && s.hosts[e.Host][Slots] > s.limits.ProtectedPerHost:
		return isActive
	}
	return notEvictable
}
