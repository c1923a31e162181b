package waits

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/bpf"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// call is a system call about a descriptor.
type call struct {
	number, descriptor int
	uninterruptible    bool
}

// switches are the times that threads of followed processes were off the processor, by call, and
// the requests of block devices. A nil one has none.
type switches struct {
	set      bpf.Set
	followed *ebpf.Map
	threads  *ebpf.Map
	totals   *ebpf.Map
	keys     [][totalKey]byte
	values   []uint64
	last     time.Duration
	ended    map[int]map[call]time.Duration // sleeps that ended since take
	debts    map[int]map[call]time.Duration // counted of sleeps before their end
	disks    *disks
}

// The sizes of the maps' keys and values in bytes, and the maximum number of threads and of their
// calls between two samples.
const (
	threadValue = 24
	totalKey    = 16
	maxSleepers = 4096
	maxTotals   = 8192
)

// initialPIDs is the first namespace of processes (PROC_PID_INIT_INO): the scheduler's numbers are
// its own.
const initialPIDs = "pid:[4026531836]"

// openSwitches attaches the programs. The error is *bpf.NotPermittedError without the privilege,
// and socket.ErrNotSupported where the kernel does not offer it.
func openSwitches() (*switches, error) {
	if err := bpf.CheckTracing(); err != nil {
		return nil, err
	}
	if in, err := os.Readlink("/proc/self/ns/pid"); err != nil || in != initialPIDs {
		return nil, fmt.Errorf("the scheduler's switches from another PID namespace: %w", socket.ErrNotSupported)
	}
	s := &switches{keys: make([][totalKey]byte, maxTotals), values: make([]uint64, maxTotals),
		ended: map[int]map[call]time.Duration{}, debts: map[int]map[call]time.Duration{}}
	if err := s.attach(); err != nil {
		_ = s.set.Close() // err says more
		return nil, err
	}
	return s, nil
}

func (s *switches) attach() error {
	kernel, err := bpf.KernelLayout()
	if err != nil {
		return fmt.Errorf("the scheduler's switches by eBPF need the kernel's BTF: %w: %w", socket.ErrNotSupported, err)
	}
	if kernel.TracepointArguments("sched_switch") < 4 || registers.call == "" {
		return fmt.Errorf("the scheduler's switches with states (Linux 5.18): %w", socket.ErrNotSupported)
	}
	for _, m := range []struct {
		at         **ebpf.Map
		name       string
		key, value uint32
		entries    uint32
	}{{&s.followed, "followed", 4, 4, 256}, {&s.threads, "threads", 4, threadValue, maxSleepers},
		{&s.totals, "totals", totalKey, 8, maxTotals}} {
		*m.at, err = s.set.Map(ebpf.MapSpec{Name: m.name, Type: ebpf.Hash, KeySize: m.key, ValueSize: m.value,
			MaxEntries: m.entries})
		if err != nil {
			return err
		}
	}
	code := switched(kernel.At, s.followed.FD(), s.threads.FD(), s.totals.FD())
	s.disks = &disks{}
	issued, completed, err := s.disks.programs(kernel, &s.set)
	if err == nil {
		err = kernel.Err()
	}
	if err != nil {
		return fmt.Errorf("the scheduler's switches by eBPF: %w: %w", socket.ErrNotSupported, err)
	}
	return errors.Join(s.set.AttachTracepoint(bpf.Switches, "sched_switch", code),
		s.set.AttachTracepoint(bpf.RequestsIssued, "block_rq_issue", issued),
		s.set.AttachTracepoint(bpf.RequestsCompleted, "block_rq_complete", completed))
}

// Close detaches the programs. It may be called again.
func (s *switches) Close() error {
	if s == nil {
		return nil
	}
	return s.set.Close()
}

func (s *switches) follow(pid int) {
	if s != nil {
		_ = s.followed.Put(uint32(pid), uint32(1)) // it is sampled in any case
	}
}

func (s *switches) forget(pid int) {
	if s != nil {
		_ = s.followed.Delete(uint32(pid)) // of a closed map, or a process that was not put
	}
}

// read takes the sleeps that ended since the last call.
func (s *switches) read() {
	if s == nil {
		return
	}
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // it exists everywhere
	s.last = time.Duration(now.Nano())
	s.ended = map[int]map[call]time.Duration{}
	var cursor ebpf.MapBatchCursor
	for {
		n, err := s.totals.BatchLookupAndDelete(&cursor, s.keys, s.values, nil)
		for i := range s.keys[:n] {
			u32 := func(at int) int { return int(int32(binary.NativeEndian.Uint32(s.keys[i][at:]))) }
			c := call{u32(4), u32(8), u32(12) != 0}
			tid := u32(0)
			d := time.Duration(s.values[i])
			paid := min(d, s.debts[tid][c])
			if paid > 0 {
				s.debts[tid][c] -= paid
			}
			s.add(s.ended, tid, c, d-paid)
		}
		if err != nil { // the end, or another time
			break
		}
	}
	for tid := range s.debts {
		if s.sleeper(tid) == nil {
			delete(s.debts, tid)
		}
	}
}

func (*switches) add(to map[int]map[call]time.Duration, tid int, c call, d time.Duration) {
	if to[tid] == nil {
		to[tid] = map[call]time.Duration{}
	}
	to[tid][c] += d
}

// sleeper returns the state of a thread; nil for one that was never seen, or has ended.
func (s *switches) sleeper(tid int) []byte {
	var value [threadValue]byte
	if s.threads.Lookup(uint32(tid), &value) != nil {
		return nil
	}
	return value[:]
}

// take returns the times that a thread was off the processor before the last read, by call: of
// length at most what it still waits for.
func (s *switches) take(tid int, length time.Duration) map[call]time.Duration {
	if s == nil {
		return nil
	}
	if state := s.sleeper(tid); state != nil {
		since := time.Duration(binary.NativeEndian.Uint64(state))
		u32 := func(at int) int { return int(int32(binary.NativeEndian.Uint32(state[at:]))) }
		c := call{u32(8), u32(12), u32(16) != 0}
		d := s.last - max(since, s.last-length)
		if since != 0 && d > 0 {
			s.add(s.ended, tid, c, d)
			s.add(s.debts, tid, c, d)
		}
	}
	return s.ended[tid]
}
