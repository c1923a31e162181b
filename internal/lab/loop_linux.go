package lab

import (
	"encoding/binary"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/link"
)

// loop is one thread that carries one direction, or both where they share something.
// Nothing else touches its ducts: who wants to know or to change something asks the
// thread, so that no thread of less weight ever holds what this one waits for.
type loop struct {
	ducts []*duct
	late  rounds
	early int64 // ns before it is due that a packet goes; see calibrate

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

// do has the loop's thread call f, and waits until it has.
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
	// together is how long a thread that has just worked leaves what falls due: waking for
	// each packet of a fast link would cost more than a timer can tell apart.
	together = 30_000 // ns
	// tick is the longest wait while there is traffic, for stalls to show.
	tick = int64(time.Millisecond)
)

// run is a loop's thread: deliver what is due, take in what is there, wait for either.
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
			took := d.takeIn(l.late.behind / 2) // packets that came meanwhile waited half of it on average
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
			until = max(next-l.early, woken+together)
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

// attend does what was asked of the thread, and forgets devices that their host deleted.
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
