package waits

import (
	"maps"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// every is the least time between two samples, and part how many times as long as the processor
// time of the last ones it is: sampling takes at most that part of a core. The kernel counts the time of a running
// thread at its ticks, 10 ms apart with HZ=100: a thread that computes shows it in each interval.
const (
	every = 20 * time.Millisecond
	part  = 50
)

// Watch samples processes until it is closed.
type Watch struct {
	stop  chan struct{}
	wake  chan struct{} // a value: there is a process to follow
	ended sync.WaitGroup
	once  sync.Once

	mu       sync.Mutex // guards what follows
	followed map[int]*sampler
	switches *switches // nil: not permitted, or not available
	started  bool
}

// Open returns a Watch that follows no process. The caller closes it.
func Open() *Watch {
	return &Watch{stop: make(chan struct{}), wake: make(chan struct{}, 1), followed: map[int]*sampler{}}
}

// Follow begins to sample a process.
func (w *Watch) Follow(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.followed[pid] != nil {
		return
	}
	if !w.started {
		w.started = true
		w.ended.Go(w.run)
		w.ended.Go(w.open)
	}
	w.followed[pid] = newSampler(pid, w.switches)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Keep ends the sampling of all processes but these.
func (w *Watch) Keep(pids map[int]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.followed, func(pid int, s *sampler) bool {
		if !pids[pid] {
			s.close()
		}
		return !pids[pid]
	})
}

// Close ends the sampling. It may be called again.
func (w *Watch) Close() {
	w.once.Do(func() { close(w.stop) })
	w.ended.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.switches.Close() // nothing depends on it any more
	w.switches = nil
}

// Take returns what a process waited for since the call before, the longest first. Of several
// threads the one whose wait explains most counts for all.
func (w *Watch) Take(pid int) []Wait {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.followed[pid]; s != nil {
		return s.take()
	}
	return nil
}

// open attaches the programs, which takes some time. Samples alone have a lower confidence.
func (w *Watch) open() {
	s, err := openSwitches()
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.switches = s
	for _, one := range w.followed {
		one.attach(s)
	}
}

func (w *Watch) run() {
	runtime.LockOSThread() // its processor time is that of the samples
	defer runtime.UnlockOSThread()
	for {
		began := threadTime()
		w.mu.Lock()
		idle := len(w.followed) == 0
		w.switches.read()
		for _, s := range w.followed {
			s.sample()
		}
		w.mu.Unlock()
		var next <-chan time.Time
		if !idle {
			next = time.After(max(every, part*(threadTime()-began)))
		}
		select {
		case <-w.stop:
			return
		case <-next:
		case <-w.wake:
		}
	}
}

// threadTime returns the processor time of this thread; 0 where the kernel does not count it.
func threadTime() time.Duration {
	var spent unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spent) != nil {
		return 0
	}
	return time.Duration(spent.Nano())
}
