package autobuf

import "sync"

// Budget is memory that connections share for their buffers. It is charged with the largest size that each connection's
// buffers can reach, so that the sum never exceeds it. While enough is left, buffers stay automatic; then new
// connections get smaller, fixed buffers. Several goroutines, Dialers and ListenConfigs may use a Budget.
type Budget struct {
	total int

	mu   sync.Mutex // guards used
	used int
}

// NewBudget returns a Budget of a number of bytes.
func NewBudget(bytes int) *Budget { return &Budget{total: bytes} }

// InUse returns the bytes charged for open connections. A closed connection's charge returns within about 1 s.
func (b *Budget) InUse() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// take charges want bytes, or half of the free bytes if that is less, but at least minimum. It returns 0 if fewer than
// minimum are free.
func (b *Budget) take(want, minimum int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	free := b.total - b.used
	if free < minimum {
		return 0
	}
	given := min(want, max(minimum, free/2))
	b.used += given
	return given
}

// release returns bytes.
func (b *Budget) release(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= bytes
}
