// Package waits samples what the threads of a process wait for: the processor, a disk, a lock,
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

// Place is what a thread waits for and where.
type Place struct {
	Kind   Kind
	Object string // a device, a program, an address; "": not known
	// Program waits: the one at the other end of the pipe for which the process waits; "": itself.
	Program string
}

// sample is what a thread did since the sample before, and where it is now.
type sample struct {
	onCPU, queued time.Duration
	at            Place
	feeder        int // the process for which it waits; 0: not known
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
}

// account adds samples up.
type account struct {
	spent map[Place]time.Duration
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
	in := func(kind Kind, object string) Place { return Place{kind, object, all[pid].name} }
	if len(threads) == 0 { // it has ended, or cannot be seen
		a.spent[in(Unknown, "")] += part(length)
		return
	}
	busiest := slices.MaxFunc(threads, func(a, b sample) int { return cmp.Compare(a.onCPU+a.queued, b.onCPU+b.queued) })
	computes := min(busiest.onCPU, length)
	queued := min(busiest.queued, length-computes)
	a.spent[in(CPU, "")] += part(computes)
	a.spent[in(RunQueue, "")] += part(queued)
	rest := length - computes - queued
	if rest == 0 {
		return
	}
	first := slices.MinFunc(threads, func(a, b sample) int {
		return cmp.Compare(slices.Index(order, a.at.Kind), slices.Index(order, b.at.Kind))
	})
	if first.at.Kind == Process && len(all[first.feeder].threads) > 0 && first.feeder != pid &&
		!slices.Contains(before, first.feeder) {
		share *= float64(rest) / float64(length)
		a.split(length, share, first.feeder, all, append(before, pid))
		return
	}
	switch {
	case slices.Contains(before, first.feeder): // two that wait for each other take turns
		a.spent[Place{Kind: Unknown}] += part(rest)
		return
	case first.at.Object == futex && len(threads) > 1: // a pool's threads wait for work
		first.at = Place{Kind: Unknown}
	}
	a.spent[in(first.at.Kind, first.at.Object)] += part(rest)
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

// waits returns what was counted, the longest first. The times add up to the intervals.
func (a *account) waits() (all []Wait) {
	for place, d := range a.spent {
		if d > 0 {
			all = append(all, Wait{place, d})
		}
	}
	slices.SortFunc(all, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Object, b.Object))
	})
	return all
}
