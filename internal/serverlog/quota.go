package serverlog

import "time"

// quota is a token bucket for lines of one kind: a burst, then a rate per minute.
type quota struct {
	burst, perMinute float64
	left             float64
	since            time.Time
	suppressed       int64         // events not printed since the last summary
	last             func() string // the last of them
	lastLines        int64         // that it takes
}

// newQuota returns the quota of a kind. Events of unauthenticated clients get six lines a minute, about 1 MB a
// day.
func newQuota(trusted bool) *quota {
	if trusted {
		return &quota{burst: 1000, perMinute: 600, left: 1000}
	}
	return &quota{burst: 30, perMinute: 6, left: 30}
}

// allows takes tokens for the lines, if there are enough. An event of more lines than a burst takes
// a whole one.
func (q *quota) allows(at time.Time, lines int64) bool {
	tokens := min(float64(lines), q.burst)
	if !q.since.IsZero() {
		q.left = min(q.burst, q.left+q.perMinute*at.Sub(q.since).Minutes())
	}
	q.since = at
	if q.left < tokens {
		return false
	}
	q.left -= tokens
	return true
}
