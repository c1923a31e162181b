package engine

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// wakeUp is what a thread's turns may wait for on average although nobody else wants its
// core: a core leaves its sleep, a hypervisor brings it back, the packet that woke the thread
// is still being worked on. 20 to 50 µs were measured in quiet virtual machines, beside two to
// four busy loops 30 to 70 µs at 100 Mbit/s, which nothing was slower for. What other programs
// take is a slice of a millisecond and more (sched_base_slice).
const wakeUp = 100 * time.Microsecond

// turns are a thread's, as they stood when they were read last.
type turns struct {
	schedule *socket.Schedule
	last     socket.Turns
	at       time.Duration
}

// openTurns reads those of the calling thread: lock the goroutine to it first.
func openTurns(now time.Duration) (*turns, error) {
	schedule, err := socket.OpenSchedule()
	if err != nil {
		return nil, err
	}
	last, err := schedule.Turns()
	if err != nil {
		schedule.Close()
		return nil, err
	}
	return &turns{schedule, last, now}, nil
}

// advance is for how long the thread had no core since it was last asked, and how much of that
// others had it.
func (t *turns) advance(now time.Duration) (waited, starved time.Duration) {
	read, err := t.schedule.Turns()
	if err != nil {
		return 0, 0
	}
	was := t.last
	span := now - t.at
	t.last = read
	t.at = now
	waited = read.Waited - was.Waited
	return waited, starvedOf(read.Ran-was.Ran, waited, read.Count-was.Count, span)
}

// starvedOf is how much of its waiting for a core a thread lost to others in a span with so many
// turns: nothing where it slept longer than it waited, and each wait was that of waking up.
func starvedOf(ran, waited time.Duration, turns int64, span time.Duration) time.Duration {
	asleep := span - ran - waited
	if waited < time.Duration(turns)*wakeUp && waited < asleep {
		return 0
	}
	return waited
}
