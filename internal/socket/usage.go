package socket

import "time"

// ProcessCPU is the user and system time that this process has used.
func ProcessCPU() (time.Duration, error) { return processCPU() }

// ProcessTimes tells the two apart; zero where the system does not tell.
func ProcessTimes() (user, system time.Duration) { return processTimes() }

// ThreadCPU is the same of the calling thread: lock the goroutine to it first.
func ThreadCPU() (time.Duration, error) { return threadCPU() }

// Schedule tells how long one thread was ready to run and had no core: other programs
// were on it, or its group's share was used up.
type Schedule struct{ schedule }

// OpenSchedule is of the calling thread: lock the goroutine to it first.
func OpenSchedule() (*Schedule, error) {
	s := &Schedule{}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// RunDelay is for how long the thread was ready but had no core since it began (run_delay
// of /proc/PID/task/TID/schedstat). It allocates nothing.
func (s *Schedule) RunDelay() (time.Duration, error) { return s.runDelay() }

// Close releases the file that is read.
func (s *Schedule) Close() error { return s.close() }

// Kernel names the running system: "Linux 6.18.44". Empty: unknown.
func Kernel() string { return kernel() }
