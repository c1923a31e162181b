//go:build !linux

package socket

import (
	"runtime"
	"time"
)

func processCPU() (time.Duration, error) { return 0, notSupported("this process's CPU time") }
func threadCPU() (time.Duration, error)  { return 0, notSupported("one thread's CPU time") }

func kernel() string { return runtime.GOOS }
