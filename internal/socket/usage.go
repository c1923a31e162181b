package socket

import "time"

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
