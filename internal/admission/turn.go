package admission

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// Handover is how long a client waits for its turn before the turn of a client of lower
	// rank ends.
	Handover = 30 * time.Second
	// MaxTurn is how long a client with the turn may begin tests, and how long one runs that
	// declared no time, while others want the turn.
	MaxTurn = 15 * time.Minute
	// grace is how long a lease lasts beyond the declared time: a test also has to begin, and
	// to exchange results.
	grace = 40 * time.Second
)

// Lease returns how long a test may keep the turn while others of its rank want it. declared is
// the time that its client asked for; 0: none.
func Lease(declared time.Duration) time.Duration {
	return cmp.Or(declared, MaxTurn) + grace
}

// Turn lets one client at a time use a server. Others wait, by rank and then in the order in
// which they came. The zero value is ready.
type Turn struct {
	Handover time.Duration // 0 is the constant of that name

	mu      sync.Mutex // guards what follows, and what Claim says of time
	holder  *Claim
	waiting []*Claim
}

// Claim is one client's claim to the turn.
type Claim struct {
	Host netip.Prefix
	Rank Rank
	// Lease is until when the holder keeps the turn though others of its rank want it; at
	// least for Handover.
	Lease time.Time
	// End, called at most once, makes the holder release the turn. It must not call the Turn.
	End func()

	since time.Time // when it began to wait, or got the turn
	moved chan struct{}
	ended bool
}

// Bounds of a Turn's queue.
const (
	maxWaiting        = 16
	maxWaitingPerHost = 4
)

// ErrQueueFull is a client that cannot wait for its turn, since too many do.
var ErrQueueFull = errors.New("as many clients wait as may")

// Take takes the turn if nobody has it, and says whether it did. Otherwise it ends the turn of a
// holder of the same or a lower rank whose lease is over.
func (t *Turn) Take(c *Claim, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder == nil {
		t.grant(c, now)
		return true
	}
	if t.holder.Rank <= c.Rank && !now.Before(t.holder.Lease) {
		t.end()
	}
	return false
}

// Wait takes the turn (place 0), or enters the queue at a place. moved receives when the place
// has changed.
func (t *Turn) Wait(c *Claim, now time.Time) (place int, moved <-chan struct{}, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.since = now
	c.moved = make(chan struct{}, 1)
	if t.holder == nil {
		t.grant(c, now)
		return 0, c.moved, nil
	}
	same := 0
	for _, w := range t.waiting {
		if w.Host == c.Host {
			same++
		}
	}
	if len(t.waiting) >= maxWaiting || same >= maxWaitingPerHost {
		return 0, nil, ErrQueueFull
	}
	i := len(t.waiting)
	for ; i > 0 && t.waiting[i-1].Rank < c.Rank; i-- {
	}
	t.waiting = slices.Insert(t.waiting, i, c)
	t.notify(i + 1)
	return i + 1, c.moved, nil
}

// Place returns the place at which a claim waits; 0: it does not.
func (t *Turn) Place(c *Claim) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Index(t.waiting, c) + 1
}

// Release gives up the turn, or the place in the queue. The next in the queue gets the turn.
func (t *Turn) Release(c *Claim, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, c); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
		t.notify(i)
		return
	}
	if t.holder != c {
		return
	}
	t.holder = nil
	if len(t.waiting) > 0 {
		t.grant(t.waiting[0], now)
		t.waiting = t.waiting[1:]
		t.holder.notify()
		t.notify(0)
	}
}

// Extend sets the holder's lease.
func (t *Turn) Extend(c *Claim, lease time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.Lease = lease
}

// Held returns how long a claim has had the turn while others want it; 0 where nobody waits.
func (t *Turn) Held(c *Claim, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder != c || len(t.waiting) == 0 {
		return 0
	}
	return now.Sub(c.since)
}

// Enforce ends the holder's turn where a waiting client has a right to it: one of a higher rank
// that has waited for Handover, or one of the same rank when the lease is over. It returns when
// to ask again; the zero time where nothing but a change of the queue or the lease matters.
func (t *Turn) Enforce(now time.Time) (next time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder == nil || t.holder.ended {
		return next
	}
	for _, w := range t.waiting {
		var due time.Time
		switch {
		case w.Rank > t.holder.Rank:
			due = w.since.Add(t.handover())
		case w.Rank == t.holder.Rank:
			due = t.holder.Lease
		default:
			continue
		}
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	if next.IsZero() || now.Before(next) {
		return next
	}
	t.end()
	return time.Time{}
}

func (t *Turn) handover() time.Duration { return cmp.Or(t.Handover, Handover) }

// grant makes c the holder. The caller holds mu.
func (t *Turn) grant(c *Claim, now time.Time) {
	t.holder = c
	c.since = now
	if least := now.Add(t.handover()); c.Lease.Before(least) {
		c.Lease = least
	}
}

// end ends the holder's turn. The caller holds mu.
func (t *Turn) end() {
	if !t.holder.ended {
		t.holder.ended = true
		t.holder.End()
	}
}

// notify wakes who waits from the ith place on. The caller holds mu.
func (t *Turn) notify(i int) {
	for _, w := range t.waiting[i:] {
		w.notify()
	}
}

func (c *Claim) notify() {
	select {
	case c.moved <- struct{}{}:
	default:
	}
}
