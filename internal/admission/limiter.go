package admission

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Limiter is a token bucket for each key: Burst tokens, and one more after each interval Every. Its methods are safe
// for concurrent use.
type Limiter struct {
	Every time.Duration
	Burst int

	mu    sync.Mutex           // guards spent
	spent map[string]time.Time // by key: when its bucket will be full
}

// maxKeys limits the memory that unauthenticated clients take.
const maxKeys = 4096

// Take removes a token from the key's bucket. It returns false if the bucket is empty.
func (l *Limiter) Take(key string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	whole := l.spent[key]
	if whole.Before(now) {
		whole = now
	}
	if whole.Sub(now)+l.Every > time.Duration(l.Burst)*l.Every {
		return false
	}
	if l.spent == nil {
		l.spent = map[string]time.Time{}
	}
	if _, known := l.spent[key]; !known && len(l.spent) >= maxKeys {
		l.forget(now)
	}
	l.spent[key] = whole.Add(l.Every)
	return true
}

// forget removes the keys with full buckets. If none is full, it removes the eighth of all keys whose buckets will be
// full first.
func (l *Limiter) forget(now time.Time) {
	maps.DeleteFunc(l.spent, func(_ string, whole time.Time) bool { return !whole.After(now) })
	if len(l.spent) < maxKeys {
		return
	}
	byTime := slices.SortedFunc(maps.Keys(l.spent), func(a, b string) int { return l.spent[a].Compare(l.spent[b]) })
	for _, key := range byTime[:maxKeys/8] {
		delete(l.spent, key)
	}
}
