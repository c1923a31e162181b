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
	// Handover is how long a client waits before the turn of a client of lower rank ends.
	Handover = 30 * time.Second
	// While others wait, a client may begin tests for MaxTurn, and a test without a requested duration may run for
	// it.
	MaxTurn = 15 * time.Minute
	// leaseMargin is the part of a lease beyond the requested duration, for the start and the results of a test.
	leaseMargin = 40 * time.Second
)

// Lease returns how long a test may keep the turn while others of its rank wait. declared is the requested
// duration; 0: none.
func Lease(declared time.Duration) time.Duration {
	return cmp.Or(declared, MaxTurn) + leaseMargin
}

// Turn admits one client at a time. Others wait by rank, then in order of arrival. The zero value is ready.
type Turn struct {
	Handover time.Duration // 0: the constant

	mu      sync.Mutex // guards the fields below and the times of Claims
	holder  *Claim
	waiting []*Claim
}

// Claim is one client's request for the turn.
type Claim struct {
	Host netip.Prefix
	Rank Rank
	// Lease is until when the holder keeps the turn against waiting clients of its rank; at least for Handover.
	Lease time.Time
	// End, called at most once, makes the holder release the turn. It must not call the Turn.
	End func()

	since time.Time // when it began to wait or got the turn
	moved chan struct{}
	ended bool
}

// Limits of a Turn's queue.
const (
	maxWaiting        = 16
	maxWaitingPerHost = 4
)

// ErrQueueFull reports that too many clients wait.
var ErrQueueFull = errors.New("as many clients wait as may")

// Take takes a free turn and reports whether it did. Otherwise it ends the turn of a holder of the same or lower
// rank whose lease is over.
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

// Wait takes the turn (place 0) or enters the queue at place. moved receives when the place changes.
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

// Place returns a claim's place in the queue, 0 if it does not wait.
func (t *Turn) Place(c *Claim) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Index(t.waiting, c) + 1
}

// Release ends the turn or leaves the queue. The next claim in the queue gets the turn.
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

// ContendedTime returns how long a claim has had the turn while others wait; 0: nobody waits.
func (t *Turn) ContendedTime(c *Claim, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder != c || len(t.waiting) == 0 {
		return 0
	}
	return now.Sub(c.since)
}

// EndExpired ends the holder's turn for a waiting client of higher rank after Handover, or of the same rank after
// the lease. It returns when to call it again; zero: only after a change of queue or lease.
func (t *Turn) EndExpired(now time.Time) (next time.Time) {
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

// grant makes c the holder. The caller has locked mu.
func (t *Turn) grant(c *Claim, now time.Time) {
	t.holder = c
	c.since = now
	if least := now.Add(t.handover()); c.Lease.Before(least) {
		c.Lease = least
	}
}

// end ends the holder's turn. The caller has locked mu.
func (t *Turn) end() {
	if !t.holder.ended {
		t.holder.ended = true
		t.holder.End()
	}
}

// notify wakes the claims from the ith place on. The caller has locked mu.
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
