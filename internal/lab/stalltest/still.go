// Package stalltest detects, for tests, whether the machine kept programs from running during a measurement.
//
// The lab reports delays of its link, but the link is a real-time process. Other work or the host of a virtual
// machine can delay ordinary processes without delaying the link. A thread that sleeps 1 ms repeatedly detects
// that.
package stalltest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	sleep = time.Millisecond
	// aTick is the usual delay of a sleep (250 Hz).
	aTick = 4 * time.Millisecond
	// maxDisturbed is the largest share of a run that the machine may stall.
	maxDisturbed = 0.01
	// maxRuns limits the attempts to measure on a quiet machine.
	maxRuns = 5
)

// Time is how long ordinary work was delayed (Still) within a time span.
type Time struct{ Still, Span time.Duration }

// Since returns the difference from an earlier Time.
func (t Time) Since(before Time) Time { return Time{t.Still - before.Still, t.Span - before.Span} }

// Disturbs reports whether the delays make a measurement useless.
func (t Time) Disturbs() bool { return t.Still.Seconds() > maxDisturbed*t.Span.Seconds() }

var canary struct {
	start time.Time
	once  sync.Once
	still atomic.Int64 // ns
}

// Now returns the delays since the first call.
func Now() Time {
	canary.once.Do(func() {
		canary.start = time.Now()
		go func() {
			for {
				before := time.Now()
				time.Sleep(sleep)
				if late := time.Since(before) - sleep; late >= aTick {
					canary.still.Add(int64(late))
				}
			}
		}()
	})
	return Time{time.Duration(canary.still.Load()), time.Since(canary.start)}
}

// Undisturbed repeats a failed measurement while the machine delays it, since a real fault fails each run. It fails
// when every run was delayed.
func Undisturbed(t *testing.T, measure func() (wrong error)) {
	t.Helper()
	var wrong error
	for range maxRuns {
		before := Now()
		wrong = measure()
		if wrong == nil {
			return
		}
		meanwhile := Now().Since(before)
		if !meanwhile.Disturbs() {
			t.Error(wrong)
			return
		}
		t.Logf("the machine stalled for %v of %v, the result does not count: %v", meanwhile.Still, meanwhile.Span, wrong)
	}
	t.Errorf("the machine stalled in each of %d runs; the last: %v", maxRuns, wrong)
}
