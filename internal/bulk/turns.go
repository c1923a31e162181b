package bulk

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// wakeUp is the largest mean run-queue wait per time slice that is not due to other programs: a core leaves its sleep,
// a hypervisor schedules it, the packet that woke the thread is still being processed. Quiet virtual machines wait 20
// to 50 µs. With two to four busy loops they wait 30 to 70 µs at 100 Mbit/s, without any loss of speed. Other programs
// use slices of a millisecond and more (sched_base_slice).
const wakeUp = 100 * time.Microsecond

// turns are a thread's scheduler statistics and the time at which they were read last.
type turns struct {
	schedule *socket.Schedule
	last     socket.Turns
	at       time.Duration
}

// openTurns reads the statistics of the calling thread: lock the goroutine to it first.
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

// advance returns the run-queue wait of the thread since the last call, and the part of it that is due to other
// programs.
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

// starvedOf returns the part of a thread's run-queue wait that is due to other programs, in a span with the given
// number of time slices. It is 0 if the thread slept longer than it waited and its mean wait is that of waking up.
func starvedOf(ran, waited time.Duration, turns int64, span time.Duration) time.Duration {
	asleep := span - ran - waited
	if waited < time.Duration(turns)*wakeUp && waited < asleep {
		return 0
	}
	return waited
}
