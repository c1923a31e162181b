package autobuf

import "sync"

// Budget is memory that connections share for their buffers. Each connection is charged
// what its buffers may grow to, so that the sum never passes the budget: while there is
// room, the system's automatic sizing is left alone; when it gets tight, new connections
// get smaller, fixed buffers. A Budget may be used from several goroutines and by
// several Dialers and ListenConfigs.
type Budget struct {
	total int

	mu   sync.Mutex // guards used
	used int
}

// NewBudget makes a budget of so many bytes.
func NewBudget(bytes int) *Budget { return &Budget{total: bytes} }

// InUse is what the living connections are charged, in bytes. A connection's charge is
// returned within a second or so after it was closed.
func (b *Budget) InUse() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// take gives want, or half of what is free if that is less, but not less than least; 0
// when not even that is free.
func (b *Budget) take(want, least int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	free := b.total - b.used
	if free < least {
		return 0
	}
	given := min(want, max(least, free/2))
	b.used += given
	return given
}

func (b *Budget) give(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= bytes
}
