package lab

import (
	"encoding/binary"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/link"
)

// loop is one thread that carries one direction, or both when they share state. Only this thread touches its ducts.
// Other threads send it functions to run, so no thread of lower priority ever owns a lock that it needs.
type loop struct {
	ducts []*duct
	late  rounds
	early int64 // ns before the due time that a packet leaves; see calibrate

	wake  int // an eventfd
	asked chan func()
}

func newLoop(ducts ...*duct) (*loop, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	l := &loop{ducts: ducts, wake: wake, asked: make(chan func(), 1)}
	for _, d := range ducts {
		d.loop = l
	}
	return l, nil
}

// do runs f on the loop's thread and waits until it returns.
func (l *loop) do(f func()) {
	done := make(chan struct{})
	l.asked <- func() { f(); close(done) }
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	unix.Write(l.wake, one[:])
	<-done
}

var origin = time.Now()

func clock() int64 { return int64(time.Since(origin)) }

const (
	// coalesce is how long a thread that has just worked delays due packets: a wake-up for each packet of a fast link
	// would cost more than a timer's resolution.
	coalesce = 30_000 // ns
	// tick is the longest wait while there is traffic, so that stalls show.
	tick = int64(time.Millisecond)
)

// run is a loop's thread: it delivers due packets, reads new ones and waits for either.
func (l *loop) run() {
	runtime.LockOSThread()
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // timers to the nanosecond, not to 50 µs
	waitFor := []unix.PollFd{{Fd: int32(l.wake), Events: unix.POLLIN}}
	for _, d := range l.ducts {
		waitFor = append(waitFor, unix.PollFd{Fd: int32(d.from.fd), Events: unix.POLLIN})
	}
	var wait unix.Timespec
	woken := clock()
	l.late.since = woken
	l.late.used = woken - traffic
	for {
		more := false
		packets := false
		for _, d := range l.ducts {
			d.acknowledge(l.late.since)
			delivered := d.deliver()
			took := d.readHost(l.late.behind / 2) // new packets waited half of it on average
			more = more || took
			packets = packets || delivered || took || d.next() != link.Never
		}
		now := clock()
		inUse := l.late.worked(now, packets)
		if more {
			continue
		}
		next := link.Never
		for _, d := range l.ducts {
			next = min(next, d.next())
		}
		until := link.Never
		if next != link.Never {
			until = max(next-l.early, woken+coalesce)
		}
		if inUse {
			until = min(until, now+tick)
		}
		var timeout *unix.Timespec
		if until != link.Never {
			if until <= now {
				continue
			}
			wait = unix.NsecToTimespec(until - now)
			timeout = &wait
		}
		unix.Ppoll(waitFor, timeout, nil)
		woken = clock()
		l.late.slept(woken, until, inUse)
		l.attend(waitFor)
	}
}

// attend runs the requested functions and drops devices that their host deleted.
func (l *loop) attend(waitFor []unix.PollFd) {
	if waitFor[0].Revents&unix.POLLIN != 0 {
		var count [8]byte
		unix.Read(l.wake, count[:])
		select {
		case f := <-l.asked:
			f()
		default:
		}
	}
	for i := range waitFor {
		if waitFor[i].Revents&^unix.POLLIN != 0 {
			waitFor[i].Fd = -1
		}
	}
}
