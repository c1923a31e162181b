package waits

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// every is the least time between two samples, and part how many times as long as the last one
	// took it is: sampling takes at most that part of a core. The kernel counts the time of a running
	// thread at its ticks, 10 ms apart with HZ=100: a thread that computes shows it in each interval.
	every = 20 * time.Millisecond
	part  = 50
	// maxThreads and maxProcesses bound a sample.
	maxThreads   = 64
	maxProcesses = 8
)

// Watch samples a process until it is closed.
type Watch struct {
	pid       int
	stop      chan struct{}
	ended     sync.WaitGroup
	mu        sync.Mutex
	account   account
	last      map[string]task // by the thread's directory
	open      map[int]*descriptors
	feeders   map[channel]int
	throttled map[int]int64 // by process, when it was first sampled
	names     map[int]string
}

// Start begins to sample a process. The caller closes it.
func Start(pid int) *Watch {
	w := &Watch{pid: pid, stop: make(chan struct{}), account: account{spent: map[Place]time.Duration{}},
		last: map[string]task{}, open: map[int]*descriptors{}, feeders: map[channel]int{}, throttled: map[int]int64{},
		names: map[int]string{}}
	w.ended.Go(w.run)
	return w
}

// Close ends the sampling.
func (w *Watch) Close() {
	close(w.stop)
	w.ended.Wait()
}

// Waits returns what the process waited for until now, the longest first. Of several threads the one
// whose wait explains most counts for all.
func (w *Watch) Waits() []Wait {
	w.mu.Lock()
	defer w.mu.Unlock()
	until := account{spent: maps.Clone(w.account.spent)}
	for pid, began := range w.throttled {
		now, known := throttledTime(pid)
		until.throttled(w.names[pid], time.Duration(max(now-began, 0)), known)
	}
	return until.waits()
}

func (w *Watch) run() {
	before := time.Time{}
	for {
		began := time.Now()
		all := w.sample()
		if !before.IsZero() {
			w.mu.Lock()
			w.account.add(began.Sub(before), w.pid, all)
			for pid, p := range all {
				if _, known := w.throttled[pid]; !known && len(w.throttled) < maxProcesses {
					w.throttled[pid], _ = throttledTime(pid)
					w.names[pid] = p.name
				}
			}
			w.mu.Unlock()
		}
		before = began
		select {
		case <-w.stop:
			return
		case <-time.After(max(every, part*time.Since(began))):
		}
	}
}

// sample reads the process and those at the other ends of the pipes that it waits for.
func (w *Watch) sample() map[int]process {
	all := map[int]process{}
	now := make(map[string]task, len(w.last))
	for next := []int{w.pid}; len(next) > 0 && len(all) < maxProcesses; next = next[1:] {
		pid := next[0]
		if _, done := all[pid]; done {
			continue
		}
		p := w.process(pid, now)
		all[pid] = p
		for _, t := range p.threads {
			if t.feeder != 0 {
				next = append(next, t.feeder)
			}
		}
	}
	w.last = now
	maps.DeleteFunc(w.open, func(pid int, _ *descriptors) bool { return all[pid].threads == nil })
	return all
}

func (w *Watch) process(pid int, now map[string]task) (p process) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	names, err := os.ReadDir(filepath.Join(dir, "task"))
	if err != nil {
		return p
	}
	if pid != w.pid {
		p.name = name(pid)
	}
	open := w.open[pid]
	if open == nil {
		open = &descriptors{dir: dir, places: map[string]Place{}}
		w.open[pid] = open
	}
	for _, thread := range names[:min(len(names), maxThreads)] {
		at := filepath.Join(dir, "task", thread.Name())
		t, err := readTask(at)
		if err != nil {
			continue
		}
		last, known := w.last[at]
		switch {
		case t.state != 'R':
			t.at, t.pipe = open.place(&t)
			if t.at.Kind == Process {
				t.feeder = w.feeder(&t, at, pid)
			}
			if t.feeder != 0 {
				t.at.Object = name(t.feeder)
			}
		case known && last.state == 'R' && t.onCPU == last.onCPU: // the kernel counts it at the end
			t.at.Kind = RunQueue
		case known: // it waited until it ran
			t.at = last.at
			t.feeder = last.feeder
		default:
			t.at.Kind = Unknown
		}
		now[at] = t
		// The times of a thread that is new here may be older than the sample before.
		if known || pid != w.pid && t.onCPU+t.queued < every {
			p.threads = append(p.threads, sample{t.onCPU - last.onCPU, t.queued - last.queued, t.at, t.feeder})
		}
	}
	return p
}

// channel is an end of a pipe.
type channel struct {
	pipe  string
	reads bool
}

// feeder returns the process for which a thread of the process self waits: its child, or the one at
// the other end of the pipe; 0 if it is not known.
func (w *Watch) feeder(t *task, dir string, self int) int {
	if t.call == unix.SYS_WAIT4 || t.call == unix.SYS_WAITID {
		return child(dir)
	}
	at := channel{t.pipe, !sends[t.call]}
	pid, known := w.feeders[at]
	if !known && t.pipe != "" {
		pid = otherEnd(t.pipe, at.reads, self)
		w.feeders[at] = pid
	}
	return pid
}

// name returns a process's name, or its number.
func name(pid int) string { return cmp.Or(program(pid), strconv.Itoa(pid)) }
