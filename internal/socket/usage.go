package socket

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// ProcessCPU is the user and system time that this process has used.
func ProcessCPU() (time.Duration, error) { return processCPU() }

// ProcessTimes returns both separately; zero where the system does not report them.
func ProcessTimes() (user, system time.Duration) { return processTimes() }

// ThreadCPU is the same of the calling thread: lock the goroutine to it first.
func ThreadCPU() (time.Duration, error) { return threadCPU() }

// Schedule returns how long one thread ran, and how long it was runnable without a core: used by other programs,
// throttled by its cgroup, or still waking up.
type Schedule struct{ schedule }

// OpenSchedule is of the calling thread: lock the goroutine to it first.
func OpenSchedule() (*Schedule, error) {
	s := &Schedule{}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// Turns is the time for which a thread ran and waited for a core since it began.
type Turns struct {
	Ran    time.Duration
	Waited time.Duration // ready, without a core
	Count  int64         // how often it got a core
}

// Turns reads the thread's times from /proc/PID/task/TID/schedstat. A wait counts when it is over. Turns does not
// allocate.
func (s *Schedule) Turns() (Turns, error) { return s.turns() }

// Close releases the file that is read.
func (s *Schedule) Close() error { return s.close() }

// Kernel names the running system: "Linux 6.18.44". Empty: unknown.
func Kernel() string { return kernel() }

// HostCPU is the machine's time since it started, in jiffies of all CPUs together. The zero value is not known.
type HostCPU struct{ idle, total uint64 }

// ReadHostCPU reads the first line of /proc/stat (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal, and
// guest times that user and nice contain already.
func ReadHostCPU() HostCPU {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return HostCPU{}
	}
	line, _, _ := strings.Cut(string(b), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return HostCPU{}
	}
	var h HostCPU
	for i, f := range fields[1:9] {
		v, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return HostCPU{}
		}
		h.total += v
		if i == 3 || i == 4 {
			h.idle += v
		}
	}
	return h
}

// Busy returns the share (0 to 1) of the machine that was busy since h was read, nil if that is not known.
func (h HostCPU) Busy() *float64 {
	now := ReadHostCPU()
	if h.total == 0 || now.total <= h.total {
		return nil
	}
	idle := max(int64(now.idle-h.idle), 0) // iowait, which counts as idle, may go back (proc(5))
	share := 1 - min(float64(idle)/float64(now.total-h.total), 1)
	return &share
}
