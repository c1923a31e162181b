package web

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// limiter grants each key a burst, and one more every so long (a token bucket).
type limiter struct {
	every time.Duration
	burst int

	mu    sync.Mutex           // guards spent
	spent map[string]time.Time // when the key's burst is whole again
}

// mostKeys bounds what is kept of strangers.
const mostKeys = 4096

// take spends one of the key's; false: it has none.
func (l *limiter) take(key string, now time.Time) bool { return l.spend(key, now, l.every) }

// has says whether the key has one to spend.
func (l *limiter) has(key string, now time.Time) bool { return l.spend(key, now, 0) }

func (l *limiter) spend(key string, now time.Time, cost time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	whole := l.spent[key]
	if whole.Before(now) {
		whole = now
	}
	if whole.Sub(now)+l.every > time.Duration(l.burst)*l.every {
		return false
	}
	if cost > 0 {
		if l.spent == nil {
			l.spent = map[string]time.Time{}
		}
		if _, known := l.spent[key]; !known && len(l.spent) >= mostKeys {
			l.forget(now)
		}
		l.spent[key] = whole.Add(cost)
	}
	return true
}

// forget drops whose burst is whole, and where that makes no room an eighth of all keys: those that are whole again
// first.
func (l *limiter) forget(now time.Time) {
	maps.DeleteFunc(l.spent, func(_ string, whole time.Time) bool { return !whole.After(now) })
	if len(l.spent) < mostKeys {
		return
	}
	byTime := slices.SortedFunc(maps.Keys(l.spent), func(a, b string) int { return l.spent[a].Compare(l.spent[b]) })
	for _, key := range byTime[:mostKeys/8] {
		delete(l.spent, key)
	}
}
