package waits

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxThreads and maxProcesses bound a sample.
const (
	maxThreads   = 64
	maxProcesses = 8
)

// sampler samples a process and those at the other ends of the pipes that it waits for.
type sampler struct {
	pid      int
	switches *switches // nil: samples alone
	account  account
	before   time.Time
	last     map[string]task // by the thread's directory
	open     map[int]*descriptors
	feeders  map[channel]int
	quotas   map[int]*quota
	names    map[int]string
	requests map[operation]Requests // at the last take
}

func newSampler(pid int, switches *switches) *sampler {
	s := &sampler{pid: pid, account: newAccount(), last: map[string]task{}, open: map[int]*descriptors{},
		feeders: map[channel]int{}, quotas: map[int]*quota{}, names: map[int]string{}}
	s.attach(switches)
	return s
}

// attach adds the switches to the samples; nil has none.
func (s *sampler) attach(switches *switches) {
	s.switches = switches
	for pid := range s.open {
		switches.follow(pid)
	}
	if switches != nil {
		switches.disks.read()
		s.requests = switches.disks.sums
	}
}

func (s *sampler) close() {
	for pid := range s.open {
		s.switches.forget(pid)
	}
}

// take returns the waits since the call before.
func (s *sampler) take() []Wait {
	for pid, q := range s.quotas {
		s.account.throttled(s.names[pid], q.since(), q.known)
	}
	all := s.account.waits(s.switches != nil)
	s.account = newAccount()
	if s.switches == nil {
		return all
	}
	s.switches.disks.read()
	for i := range all {
		w := &all[i]
		device, is := strings.CutPrefix(w.Object, "/dev/")
		if w.Kind != Disk || !is {
			continue
		}
		o := operation{diskOf(device), w.Write}
		if r := s.switches.disks.sums[o].since(s.requests[o]); r.Count > 0 {
			w.Requests = r
		}
	}
	s.requests = s.switches.disks.sums
	return all
}

// sample counts what happened since the sample before.
func (s *sampler) sample() {
	began := time.Now()
	all := map[int]process{}
	now := make(map[string]task, len(s.last))
	for next := []int{s.pid}; len(next) > 0 && len(all) < maxProcesses; next = next[1:] {
		pid := next[0]
		if _, done := all[pid]; done {
			continue
		}
		p := s.process(pid, now)
		all[pid] = p
		for i := range p.threads {
			for _, w := range p.threads[i].waits {
				if w.feeder != 0 {
					next = append(next, w.feeder)
				}
			}
		}
	}
	s.last = now
	maps.DeleteFunc(s.open, func(pid int, _ *descriptors) bool {
		gone := all[pid].threads == nil
		if gone {
			s.switches.forget(pid)
		}
		return gone
	})
	if !s.before.IsZero() {
		s.account.add(began.Sub(s.before), s.pid, all)
		for pid, p := range all {
			if s.quotas[pid] == nil && len(s.quotas) < maxProcesses {
				s.quotas[pid] = newQuota(pid)
				s.names[pid] = p.name
			}
		}
	}
	s.before = began
}

func (s *sampler) process(pid int, now map[string]task) (p process) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	names, err := os.ReadDir(filepath.Join(dir, "task"))
	if err != nil {
		return p
	}
	if pid != s.pid {
		p.name = name(pid)
	}
	open := s.open[pid]
	if open == nil {
		open = &descriptors{dir: dir, places: map[string]Place{}, known: map[call]portion{}}
		s.open[pid] = open
		s.switches.follow(pid)
	}
	for _, thread := range names[:min(len(names), maxThreads)] {
		at := filepath.Join(dir, "task", thread.Name())
		t, err := readTask(at)
		if err != nil {
			continue
		}
		last, known := s.last[at]
		switch {
		case t.state != 'R':
			t.at = s.portion(open, &t, at, pid)
		case known && last.state == 'R' && t.onCPU == last.onCPU: // the kernel counts it at the end
			t.at = portion{Place: Place{Kind: RunQueue}}
		case known: // it waited until it ran
			t.at = last.at
		default:
			t.at = portion{Place: Place{Kind: Unknown}}
		}
		now[at] = t
		// The times of a thread that is new here may be older than the sample before.
		if known || pid != s.pid && t.onCPU+t.queued < every {
			one := sample{onCPU: t.onCPU - last.onCPU, queued: t.queued - last.queued}
			one.waits = s.waits(open, &t, time.Since(s.before)-one.onCPU-one.queued, at, pid)
			p.threads = append(p.threads, one)
		}
	}
	return p
}

// portion returns what a sleeping thread waits for.
func (s *sampler) portion(open *descriptors, t *task, dir string, pid int) (p portion) {
	p.Place, t.pipe = open.place(t)
	p.guessed = t.call < 0
	if p.Kind == Process {
		p.feeder = s.feeder(t, dir, pid)
	}
	if p.feeder != 0 {
		p.Object = name(p.feeder)
	}
	return p
}

// waits returns the waits of a thread in the time since the last sample in which it did not run:
// those that the scheduler's switches show, and for the rest the one of the sample.
func (s *sampler) waits(open *descriptors, t *task, rest time.Duration, dir string, pid int) (all []portion) {
	tid, err := strconv.Atoi(filepath.Base(dir))
	if err != nil {
		return nil
	}
	for c, d := range s.switches.take(tid, time.Since(s.before)) {
		p := s.ofCall(open, t, c, dir, pid)
		p.time = min(d, max(rest, 0))
		rest -= p.time
		all = append(all, p)
	}
	p := t.at
	p.time = max(rest, 1)
	return append(all, p)
}

// ofCall returns what a thread waited for in a call that the kernel's scheduler saw.
func (s *sampler) ofCall(open *descriptors, t *task, c call, dir string, pid int) portion {
	if t.state != 'R' && t.call == c.number && t.descriptor() == c.descriptor {
		p := t.at
		p.guessed = false
		open.remember(c, p)
		return p
	}
	one := task{state: 'S', call: c.number}
	one.arguments[0] = uint64(uint32(c.descriptor))
	if c.uninterruptible {
		one.state = 'D'
	}
	several := isPoll(c.number) && !isEpoll(c.number) // its set is in memory that has changed since
	if !several {
		p := s.portion(open, &one, dir, pid)
		if p.Kind != Unknown {
			p.guessed = false
			open.remember(c, p)
			return p
		}
	}
	p, known := open.known[c]
	if !known {
		p = portion{Place: Place{Kind: Unknown}}
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
func (s *sampler) feeder(t *task, dir string, self int) int {
	if t.call == unix.SYS_WAIT4 || t.call == unix.SYS_WAITID {
		return child(dir)
	}
	at := channel{t.pipe, !sends[t.call]}
	pid, known := s.feeders[at]
	if t.pipe != "" && (!known || pid != 0 && program(pid) == "") { // not yet, or it has ended
		pid = otherEnd(t.pipe, at.reads, self)
		s.feeders[at] = pid
	}
	return pid
}

// name returns a process's name, or its number.
func name(pid int) string { return cmp.Or(program(pid), strconv.Itoa(pid)) }
