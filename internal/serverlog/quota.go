package serverlog

import (
	"slices"
	"sync"
	"time"
)

// quota counts the lines of one kind.
type quota struct {
	*bucket
	suppressed int64         // events not printed since the last summary
	last       func() string // the last of them
	lastLines  int64         // that it takes
}

// bucket is a token bucket for lines: a burst, then a rate per minute. Kinds of one bucket that wait for tokens get
// them in turn, so that a flood of one kind does not hide another.
type bucket struct {
	burst, perMinute float64

	mu      sync.Mutex // guards the fields below
	left    float64
	since   time.Time
	waiting []*quota
}

// newTrusted returns the bucket of a kind that only authenticated clients cause.
func newTrusted() *bucket { return &bucket{burst: 1000, perMinute: 600, left: 1000} }

// newUntrusted returns the bucket of all other kinds together. With the last summary of each kind they print at most 36
// lines in 60 s, and about 1 MB a day.
func newUntrusted() *bucket { return &bucket{burst: 24, perMinute: 6, left: 24} }

// allows takes tokens for lines of a kind, if there are enough and it is the kind's turn. An event of more lines than a
// burst takes a whole one.
func (b *bucket) allows(q *quota, at time.Time, lines int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	tokens := min(float64(lines), b.burst)
	if !b.since.IsZero() {
		b.left = min(b.burst, b.left+b.perMinute*at.Sub(b.since).Minutes())
	}
	b.since = at
	if b.left < tokens || len(b.waiting) > 0 && b.waiting[0] != q {
		if !slices.Contains(b.waiting, q) {
			b.waiting = append(b.waiting, q)
		}
		return false
	}
	b.left -= tokens
	b.leave(q)
	return true
}

// leave ends a kind's wait. mu is locked.
func (b *bucket) leave(q *quota) {
	b.waiting = slices.DeleteFunc(b.waiting, func(one *quota) bool { return one == q })
}
