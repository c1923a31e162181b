package socket

import "time"

// ProcessCPU is the user and system time that this process has used.
func ProcessCPU() (time.Duration, error) { return processCPU() }

// ThreadCPU is the same of the calling thread: lock the goroutine to it first.
func ThreadCPU() (time.Duration, error) { return threadCPU() }

// Kernel names the running system: "Linux 6.18.44". Empty: unknown.
func Kernel() string { return kernel() }
