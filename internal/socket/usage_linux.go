package socket

import (
	"time"

	"golang.org/x/sys/unix"
)

func processCPU() (time.Duration, error) { return usage(unix.RUSAGE_SELF) }
func threadCPU() (time.Duration, error)  { return usage(unix.RUSAGE_THREAD) }

func usage(who int) (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(who, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
}
