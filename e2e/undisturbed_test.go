package e2e

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A test that judges what a program measured needs a machine that let the program run. The
// lab says when its link was late, but the link is a real-time process: ordinary ones, as
// those that measure are, can be held up without it, by other work or by the host of a
// virtual machine. One that only sleeps for a millisecond again and again shows that.

const (
	canarySleep = time.Millisecond
	// aTick is how late a sleep may end without anything being the matter (250 Hz).
	aTick = 4 * time.Millisecond
	// mostDisturbed is the share of a run that its machine may have stood still.
	mostDisturbed = 0.01
	// mostRuns bounds how often a machine is given the chance to be quiet.
	mostRuns = 5
)

// stillness is for how long ordinary work was held up in a span of time.
type stillness struct{ still, span time.Duration }

// since is what has come to it.
func (s stillness) since(before stillness) stillness {
	return stillness{s.still - before.still, s.span - before.span}
}

// disturbs says whether what was measured meanwhile tells nothing.
func (s stillness) disturbs() bool { return s.still.Seconds() > mostDisturbed*s.span.Seconds() }

var canary struct {
	start time.Time
	once  sync.Once
	still atomic.Int64 // ns
}

// stoodStill is how still the machine has stood since it was first asked.
func stoodStill() stillness {
	canary.once.Do(func() {
		canary.start = time.Now()
		go func() {
			for {
				before := time.Now()
				time.Sleep(canarySleep)
				if late := time.Since(before) - canarySleep; late >= aTick {
					canary.still.Add(int64(late))
				}
			}
		}()
	})
	return stillness{time.Duration(canary.still.Load()), time.Since(canary.start)}
}

// undisturbed fails with what is wrong with a measurement, unless the machine held it up: then
// another one tells. A fault stands in each run; where a machine lets none of them be, nothing
// can be judged, and the test says so and is skipped.
func undisturbed(t *testing.T, measure func() (wrong error)) {
	t.Helper()
	var wrong error
	for range mostRuns {
		before := stoodStill()
		if wrong = measure(); wrong == nil {
			return
		}
		meanwhile := stoodStill().since(before)
		if !meanwhile.disturbs() {
			t.Error(wrong)
			return
		}
		t.Logf("the machine stood still for %v of %v, so this tells nothing: %v", meanwhile.still, meanwhile.span, wrong)
	}
	t.Skipf("the machine held up each of %d runs, and none came out as it should", mostRuns)
}
