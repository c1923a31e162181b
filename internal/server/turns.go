package server

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// turns are who may measure with a server that takes one client at a time. The others wait
// in the order in which they proved the key.
type turns struct {
	mu      sync.Mutex // guards what follows
	taken   bool
	since   time.Time // the turn that is taken
	waiting []*waiter
}

// waiter is a client that waits for its turn.
type waiter struct {
	host  netip.Prefix
	moved chan struct{} // has room for one: its place changed
	turn  chan struct{} // closed when it has come
}

const (
	// mostWaiting is how many clients wait, mostWaitingPerHost how many of one IPv4 address
	// or IPv6 /64.
	mostWaiting        = 16
	mostWaitingPerHost = 4
	// tellEvery is how often a waiting client hears of its place, so that it knows that the
	// server is there, and the server that it is.
	tellEvery = 5 * time.Second
	// longestTurn is when a client that has the turn begins no other test, if others wait.
	longestTurn = 15 * time.Minute
)

var errQueueFull = errors.New("as many clients wait as may")

// wait answers nil when the turn of a client has come, which release then ends. tell tells
// it its place, 1 being the next.
func (t *turns) wait(ctx context.Context, client netip.Addr, tell func(place int) error) error {
	w := &waiter{host: socket.Subscriber(client), moved: make(chan struct{}, 1), turn: make(chan struct{})}
	place, err := t.enter(w)
	if err != nil || place == 0 {
		return err
	}
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		if err := tell(place); err != nil {
			t.leave(w)
			return err
		}
		select {
		case <-w.turn:
			return nil
		case <-w.moved:
		case <-tick.C:
		case <-ctx.Done():
			t.leave(w)
			return context.Cause(ctx)
		}
		if place = t.place(w); place == 0 {
			return nil
		}
	}
}

// enter takes the turn (place 0) or a place in the queue.
func (t *turns) enter(w *waiter) (place int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.taken {
		t.taken, t.since = true, time.Now()
		return 0, nil
	}
	same := 0
	for _, other := range t.waiting {
		if other.host == w.host {
			same++
		}
	}
	if len(t.waiting) >= mostWaiting || same >= mostWaitingPerHost {
		return 0, errQueueFull
	}
	t.waiting = append(t.waiting, w)
	return len(t.waiting), nil
}

// place is where a client waits; 0: it has the turn.
func (t *turns) place(w *waiter) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Index(t.waiting, w) + 1
}

// leave gives up a place, or the turn where that came just now.
func (t *turns) leave(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting, w)
	if i < 0 {
		t.pass()
		return
	}
	t.waiting = slices.Delete(t.waiting, i, i+1)
	t.tellMoved(i)
}

// release ends a turn: the next one's comes.
func (t *turns) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
}

// pass gives the turn to who waits longest. The caller holds mu.
func (t *turns) pass() {
	if t.taken = len(t.waiting) > 0; !t.taken {
		return
	}
	next := t.waiting[0]
	t.waiting, t.since = t.waiting[1:], time.Now()
	close(next.turn)
	t.tellMoved(0)
}

// tellMoved wakes who waits from the ith place on. The caller holds mu.
func (t *turns) tellMoved(i int) {
	for _, w := range t.waiting[i:] {
		select {
		case w.moved <- struct{}{}:
		default:
		}
	}
}

// try takes the turn if nobody has it and nobody waits for it.
func (t *turns) try() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken {
		return false
	}
	t.taken, t.since = true, time.Now()
	return true
}

// wanted says whether others wait, and whether the turn has been long enough for them.
func (t *turns) wanted() (others, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	others = len(t.waiting) > 0
	return others, others && time.Since(t.since) > longestTurn
}

// TryTurn takes the turn of an exclusive server for somebody without the key, who waits for
// nothing; ok is false while another has it. release gives it back.
func (s *Server) TryTurn() (release func(), ok bool) {
	if !s.config.Exclusive {
		return func() {}, true
	}
	return s.turns.release, s.turns.try()
}
