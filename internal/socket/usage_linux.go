package socket

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func processCPU() (time.Duration, error) { return usage(unix.RUSAGE_SELF) }
func threadCPU() (time.Duration, error)  { return usage(unix.RUSAGE_THREAD) }

func processTimes() (user, system time.Duration) {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}

func usage(of int) (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(of, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// schedule reads proc's schedstat: time on a core, time ready without one, in ns, and a
// count of turns (Documentation/scheduler/sched-stats.rst).
type schedule struct {
	fd   int
	text [96]byte
}

func (s *schedule) open() (err error) {
	s.fd, err = unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	return os.NewSyscallError("open /proc/thread-self/schedstat", err)
}

func (s *schedule) turns() (Turns, error) {
	n, err := unix.Pread(s.fd, s.text[:], 0)
	if err != nil {
		return Turns{}, os.NewSyscallError("read schedstat", err)
	}
	numbers := threeNumbers(s.text[:n])
	return Turns{time.Duration(numbers[0]), time.Duration(numbers[1]), numbers[2]}, nil
}

func (s *schedule) close() error { return unix.Close(s.fd) }

// threeNumbers reads a line of three numbers with a blank between them.
func threeNumbers(text []byte) (numbers [3]int64) {
	field := 0
	for _, b := range text {
		switch {
		case b == ' ':
			field++
		case field < len(numbers) && b >= '0' && b <= '9':
			numbers[field] = 10*numbers[field] + int64(b-'0')
		}
	}
	return numbers
}

func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
}
