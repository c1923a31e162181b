package mesh

import (
	"math"
	"time"
)

// burst is the share of a day's budget that runs may take at once. The rest refills evenly over a day, so no 24 hours
// take more than the budget.
const burst = 0.2

// bucket is the rest of a budget. It is nil without a budget.
type bucket struct {
	day   float64 // the budget
	level float64 // at the time at; negative after a run that took more than it reserved
	at    time.Time
}

func newBucket(budget int64, now time.Time) *bucket {
	if budget <= 0 {
		return nil
	}
	return &bucket{day: float64(budget), level: burst * float64(budget), at: now}
}

func (b *bucket) refill(now time.Time) {
	if passed := now.Sub(b.at); passed > 0 {
		b.level = min(burst*b.day, b.level+(1-burst)*b.day*passed.Hours()/day.Hours())
		b.at = now
	}
}

// has reports whether an amount may be taken now.
func (b *bucket) has(amount int64, now time.Time) bool {
	if b == nil {
		return true
	}
	b.refill(now)
	return b.level >= float64(amount)
}

func (b *bucket) take(amount int64, now time.Time) {
	if b == nil {
		return
	}
	b.refill(now)
	b.level -= float64(amount)
}

// ready returns when an amount may be taken, and false where the budget never allows it.
func (b *bucket) ready(amount int64, now time.Time) (time.Time, bool) {
	switch {
	case b.has(amount, now):
		return now, true
	case float64(amount) > burst*b.day:
		return time.Time{}, false
	}
	missing := float64(amount) - b.level
	wait := missing / ((1 - burst) * b.day) * float64(day)
	return now.Add(time.Duration(math.Ceil(wait)) + time.Nanosecond), true
}
