package admission

import (
	"fmt"
	"testing"
	"time"
)

// TestLimiter_ManyKeys checks that an empty bucket stays empty when many other keys are added.
func TestLimiter_ManyKeys(t *testing.T) {
	l := Limiter{Every: time.Minute, Burst: 10}
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for l.Take("guesser", now) {
	}
	for n := range 3 * maxKeys {
		if !l.Take(fmt.Sprint(n), now.Add(time.Duration(n)*time.Microsecond)) {
			t.Fatalf("new key %d has no token", n)
		}
		if len(l.spent) > maxKeys {
			t.Fatalf("%d keys are kept", len(l.spent))
		}
	}
	if l.Take("guesser", now.Add(30*time.Second)) {
		t.Error("a token before a minute")
	}
	if !l.Take("guesser", now.Add(time.Minute)) {
		t.Error("no token after a minute")
	}
	for n := range maxKeys / 2 {
		l.Take(fmt.Sprint("later ", n), now.Add(time.Hour))
	}
	if len(l.spent) > maxKeys {
		t.Errorf("%d keys are kept", len(l.spent))
	}
}
