//go:build !linux

package socket

import (
	"time"
)

func processTimes() (user, system time.Duration) { return 0, 0 }

func processCPU() (time.Duration, error) { return 0, notSupported("this process's CPU time") }
func threadCPU() (time.Duration, error)  { return 0, notSupported("one thread's CPU time") }

type schedule struct{}

func (*schedule) open() error {
	return notSupported("how long a thread waits for a core")
}
func (*schedule) turns() (Turns, error) { return Turns{}, nil }
func (*schedule) close() error          { return nil }
