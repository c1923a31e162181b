// Package waits finds what the threads of a process wait for: the processor, a disk, a lock,
// another process, the far end of a connection.
//
// On Linux it reads /proc, at most 50 times a second, and changes nothing. A sample shows
// the system call that a thread waits in and the descriptor that the call is about; the time on the
// processor and in its queue are the kernel's own counters. A program that waits for many
// descriptors at once (epoll, poll, select) does not show for which of them: that is Unknown.
package waits

import (
	"cmp"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Kind is what a thread waits for.
type Kind string

// The kinds of waiting. The values appear in JSON documents.
const (
	CPU      Kind = "cpu"       // it computes
	RunQueue Kind = "run-queue" // it could run, and the processors are busy
	Quota    Kind = "quota"     // its control group has used its share of the processors
	Disk     Kind = "disk"      // a file, its file system or the device below
	Memory   Kind = "memory"    // the kernel frees memory first
	Network  Kind = "network"   // a full send buffer: TCP takes no more data
	Process  Kind = "process"   // a pipe, a local socket or a child
	Peer     Kind = "peer"      // data that the other end of a connection has not sent
	Lock     Kind = "lock"
	Sleep    Kind = "sleep" // it asked for it
	Unknown  Kind = "unknown"
)

// order has the kinds in the order in which they explain a process of several threads: an idle
// thread waits for work while another one's wait for the disk delays the process.
var order = []Kind{RunQueue, Disk, Memory, Network, Process, Peer, Lock, Sleep, Unknown}

// Kinds returns all kinds.
func Kinds() (all []string) {
	for _, kind := range append([]Kind{CPU, Quota}, order...) {
		all = append(all, string(kind))
	}
	return all
}

// Place is what a thread waits for and where.
type Place struct {
	Kind   Kind
	Object string // a device, a program, an address; "": not known
	Write  bool   // of a disk: it writes, else it reads
	// Program waits: the one at the other end of the pipe for which the process waits; "": itself.
	Program string
}

// portion is a wait of a thread.
type portion struct {
	Place
	time    time.Duration
	feeder  int  // the process for which it waits; 0: not known
	guessed bool // from the kernel's function alone
}

// sample is what a thread did since the sample before.
type sample struct {
	onCPU, queued time.Duration
	waits         []portion
}

// of returns the waits of a kind, and their sum.
func (s *sample) of(kind Kind) (all []portion, sum time.Duration) {
	for _, p := range s.waits {
		if p.Kind == kind {
			all = append(all, p)
			sum += p.time
		}
	}
	return all, sum
}

// process is a sample of all threads of a process.
type process struct {
	name    string // "" for the one that was asked for
	threads []sample
}

// futex is a lock within a process, or its threads' waiting for work.
const futex = "futex"

// Wait is the time that a process spent in one place.
type Wait struct {
	Place
	Time time.Duration
	// Confidence is high for the kernel's own counters, medium for samples of system calls, low for
	// samples of the kernel's functions or of less than a second; "" for Unknown.
	Confidence verdict.Confidence
	// Requests are all those of the disk with the same operation; nil: not known.
	Requests *Requests
}

// Requests are those that a block device completed.
type Requests struct {
	Count int
	Time  time.Duration // the sum of all
	Bytes int64
}

func (r Requests) since(before Requests) *Requests {
	return &Requests{r.Count - before.Count, r.Time - before.Time, r.Bytes - before.Bytes}
}

// account adds samples up.
type account struct {
	spent   map[Place]time.Duration
	guessed map[Place]time.Duration // of spent
}

func newAccount() account {
	return account{map[Place]time.Duration{}, map[Place]time.Duration{}}
}

// add counts an interval of a process. all has the processes at the other ends of its pipes too: a
// process that waits for one of them waits for the same place.
func (a *account) add(length time.Duration, pid int, all map[int]process) {
	a.split(length, 1, pid, all, nil)
}

// split counts a share of an interval of the process pid. Those before wait for it.
func (a *account) split(length time.Duration, share float64, pid int, all map[int]process, before []int) {
	part := func(d time.Duration) time.Duration { return time.Duration(share * float64(d)) }
	threads := all[pid].threads
	in := func(at Place) Place {
		at.Program = all[pid].name
		return at
	}
	if len(threads) == 0 { // it has ended, or cannot be seen
		a.spent[in(Place{Kind: Unknown})] += part(length)
		return
	}
	busiest := slices.MaxFunc(threads, func(a, b sample) int { return cmp.Compare(a.onCPU+a.queued, b.onCPU+b.queued) })
	computes := min(busiest.onCPU, length)
	queued := min(busiest.queued, length-computes)
	a.spent[in(Place{Kind: CPU})] += part(computes)
	a.spent[in(Place{Kind: RunQueue})] += part(queued)
	for _, w := range explain(threads, length-computes-queued) {
		switch {
		case slices.Contains(before, w.feeder): // two that wait for each other take turns
			a.spent[Place{Kind: Unknown}] += part(w.time)
		case w.Kind == Process && len(all[w.feeder].threads) > 0 && w.feeder != pid:
			a.split(length, share*float64(w.time)/float64(length), w.feeder, all, append(before, pid))
		default:
			a.spent[in(w.Place)] += part(w.time)
			if w.guessed {
				a.guessed[in(w.Place)] += part(w.time)
			}
		}
	}
}

// explain splits the time in which no thread ran by their waits. A kind that explains more counts
// first, by the thread that waited longest for it.
func explain(threads []sample, rest time.Duration) (all []portion) {
	left := rest
	for _, kind := range order {
		var longest []portion
		most := time.Duration(0)
		for i := range threads {
			of, sum := threads[i].of(kind)
			if sum > most {
				longest = of
				most = sum
			}
		}
		for _, p := range longest {
			if kind == Lock && p.Object == futex && len(threads) > 1 { // a pool's threads wait for work
				continue
			}
			p.time = min(p.time, left)
			left -= p.time
			all = append(all, p)
		}
	}
	return append(all, portion{Place: Place{Kind: Unknown}, time: left})
}

// throttled moves the time that a program's control groups were out of their quota from the run
// queue, in which the kernel counts it. Where not all groups are known, the rest stays open.
func (a *account) throttled(program string, d time.Duration, known bool) {
	queue := Place{Kind: RunQueue, Program: program}
	d = min(d, a.spent[queue])
	a.spent[queue] -= d
	a.spent[Place{Kind: Quota, Program: program}] += d
	if !known {
		a.spent[Place{Kind: Unknown, Program: program}] += a.spent[queue]
		delete(a.spent, queue)
	}
}

// minSampled is the time from which samples give more than low confidence.
const minSampled = time.Second

// waits returns what was counted, the longest first. The times add up to the intervals. switches
// says that the waits come from the scheduler's switches, not from samples.
func (a *account) waits(switches bool) (all []Wait) {
	total := time.Duration(0)
	for place, d := range a.spent {
		total += d
		if d > 0 {
			all = append(all, Wait{Place: place, Time: d})
		}
	}
	for i := range all {
		w := &all[i]
		counted := w.Kind == CPU || w.Kind == RunQueue || w.Kind == Quota
		switch {
		case w.Kind == Unknown:
		case total < minSampled || 2*a.guessed[w.Place] > w.Time:
			w.Confidence = verdict.Low
		case counted || switches:
			w.Confidence = verdict.High
		default:
			w.Confidence = verdict.Medium
		}
	}
	slices.SortFunc(all, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Object, b.Object))
	})
	return all
}
