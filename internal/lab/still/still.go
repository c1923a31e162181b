// Package still tells tests whether the machine let programs run while they measured.
//
// The lab says when its link was late, but the link is a real-time process: ordinary ones, as those
// that measure are, can be held up without it, by other work or by the host of a virtual machine.
// One that only sleeps for a millisecond again and again shows that.
package still

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	sleep = time.Millisecond
	// aTick is how late a sleep may end without anything being the matter (250 Hz).
	aTick = 4 * time.Millisecond
	// mostDisturbed is the share of a run that its machine may have stood still.
	mostDisturbed = 0.01
	// mostRuns bounds how often a machine is given the chance to be quiet.
	mostRuns = 5
)

// Time is for how long ordinary work was held up in a span of time.
type Time struct{ Still, Span time.Duration }

// Since is what has come to it.
func (t Time) Since(before Time) Time { return Time{t.Still - before.Still, t.Span - before.Span} }

// Disturbs says whether what was measured meanwhile tells nothing.
func (t Time) Disturbs() bool { return t.Still.Seconds() > mostDisturbed*t.Span.Seconds() }

var canary struct {
	start time.Time
	once  sync.Once
	still atomic.Int64 // ns
}

// Now is how still the machine has stood since it was first asked.
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

// Undisturbed fails with what is wrong with a measurement, unless the machine held it up: then
// another one tells. A fault stands in each run. It fails as well where the machine held up each run.
func Undisturbed(t *testing.T, measure func() (wrong error)) {
	t.Helper()
	var wrong error
	for range mostRuns {
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
		t.Logf("the machine stood still for %v of %v, so this tells nothing: %v", meanwhile.Still, meanwhile.Span, wrong)
	}
	t.Errorf("the machine held up each of %d runs; the last: %v", mostRuns, wrong)
}
