package bulk

import (
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// clock counts from the transfer's start at this end.
type clock struct{ start time.Time }

func (c clock) now() time.Duration { return time.Since(c.start) }

// wallClock records the largest step of the wall clock since the transfer began.
type wallClock struct {
	start time.Time
	most  time.Duration
}

func (w *wallClock) look() {
	if step := clockStep(w.start, time.Now()); step.Abs() > w.most.Abs() {
		w.most = step
	}
}

// clockStep returns by how much the wall clock was set between two times: its elapsed time less the monotonic clock's.
// NTP's slewing (adjtimex) moves both alike. A host that was suspended or migrated in between shows as a step.
func clockStep(from, to time.Time) time.Duration {
	return stepOf(to.Round(0).Sub(from.Round(0)), to.Sub(from))
}

func stepOf(wall, monotonic time.Duration) time.Duration {
	step := wall - monotonic
	if step.Abs() < transfer.MinClockStep {
		return 0
	}
	return step
}

// account has the counters of one data loop. The loop writes them, the sampler reads them.
type account struct {
	clock  clock
	writes bool
	bytes  atomic.Int64
	first  atomic.Int64 // ns; 0: no byte yet
	// opening is the size of the first read or write. Only the loop uses it.
	opening int64
	last    atomic.Int64
	spent   [waits]atomic.Int64
	// turns are the scheduler statistics of the loop's thread; nil: not running, or not available. unfed is the
	// run-queue wait with the wake-up latency, starved without it. Only the sampler uses them while the loop runs.
	turns          atomic.Pointer[turns]
	unfed, starved time.Duration
	// now is the current wait: its start in ns, shifted left, and its kind; 0: none.
	now atomic.Int64
}

// Reasons for which a data loop waits.
const (
	_        = iota
	blocked  // the kernel: space or data
	paused   // its own rate
	awaiting // the other program's answer
	waits

	waitBits = 2
)

// wait runs one wait and counts its time.
func (a *account) wait(kind int64, wait func(time.Duration) error, timeout time.Duration) error {
	start := a.clock.now()
	a.now.Store(int64(start)<<waitBits | kind)
	err := wait(timeout)
	a.now.Store(0)
	a.spent[kind].Add(int64(a.clock.now() - start))
	return err
}

// moved counts n bytes.
func (a *account) moved(n int) {
	if n <= 0 {
		return
	}
	at := max(int64(a.clock.now()), 1)
	if a.first.Load() == 0 {
		a.first.Store(at)
		a.opening = int64(n)
	}
	a.last.Store(at)
	a.bytes.Add(int64(n))
}

// runDelaySoFar returns the run-queue wait of the thread since the loop began. A reader's includes the wake-up latency,
// which is part of its wait for data.
func (a *account) runDelaySoFar() time.Duration {
	if t := a.turns.Load(); t != nil {
		waited, starved := t.advance(a.clock.now())
		a.unfed = a.unfed + waited
		a.starved = a.starved + starved
	}
	if a.writes {
		return a.starved
	}
	return a.unfed
}

func (a *account) fill(s *transfer.Sample) {
	s.Have |= transfer.HaveProgram
	s.Program = a.bytes.Load()
	spent := [waits]int64{}
	for kind := range spent {
		spent[kind] = a.spent[kind].Load()
	}
	if now := a.now.Load(); now != 0 {
		spent[now&(1<<waitBits-1)] += max(int64(s.At)-now>>waitBits, 0)
	}
	s.RunqueueWait = a.runDelaySoFar()
	s.Blocked = time.Duration(spent[blocked])
	s.Paused = time.Duration(spent[paused])
	s.Awaited = time.Duration(spent[awaiting])
}
