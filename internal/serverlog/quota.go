package serverlog

import "time"

// quota bounds how many lines of one kind are printed: a burst, and then so many a minute
// (a token bucket).
type quota struct {
	burst, perMinute float64
	left             float64
	since            time.Time
	held             int64         // events that were not printed since the last summary
	last             func() string // the last of them
}

// newQuota returns the quota of a kind. Events that strangers cause get little: six lines a
// minute are some 1 MB a day.
func newQuota(trusted bool) *quota {
	if trusted {
		return &quota{burst: 1000, perMinute: 600, left: 1000}
	}
	return &quota{burst: 30, perMinute: 6, left: 30}
}

// allows takes the tokens of so many lines, if there are as many.
func (q *quota) allows(at time.Time, lines int64) bool {
	if !q.since.IsZero() {
		q.left = min(q.burst, q.left+q.perMinute*at.Sub(q.since).Minutes())
	}
	q.since = at
	if q.left < float64(lines) {
		return false
	}
	q.left -= float64(lines)
	return true
}
