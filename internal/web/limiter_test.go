package web

import (
	"fmt"
	"testing"
	"time"
)

// TestLimiter_ManyKeys: many keys that spend once do not give its burst back to the one that has spent all of it.
func TestLimiter_ManyKeys(t *testing.T) {
	l := limiter{every: time.Minute, burst: 10}
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for l.take("guesser", now) {
	}
	for n := range 3 * mostKeys {
		if !l.take(fmt.Sprint(n), now.Add(time.Duration(n)*time.Microsecond)) {
			t.Fatalf("stranger %d may not spend one", n)
		}
		if len(l.spent) > mostKeys {
			t.Fatalf("%d keys are kept", len(l.spent))
		}
	}
	if l.has("guesser", now.Add(30*time.Second)) {
		t.Error("it may spend before a minute is over")
	}
	if !l.has("guesser", now.Add(time.Minute)) {
		t.Error("it may not spend after a minute")
	}
	for n := range mostKeys / 2 {
		l.take(fmt.Sprint("later ", n), now.Add(time.Hour))
	}
	if len(l.spent) > mostKeys {
		t.Errorf("%d keys are kept", len(l.spent))
	}
}
