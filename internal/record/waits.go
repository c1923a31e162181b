package record

import "github.com/fullpipe-net/fullpipe/internal/verdict"

// Wait is the time that a program spent in one place.
type Wait struct {
	// Kind is cpu, run-queue, quota, disk, memory, network, process, peer, lock, sleep or unknown.
	Kind string `json:"kind"`
	// Object is a device, a file system, a program, an address or terminal.
	Object string `json:"object,omitempty"`
	// Operation is read or write, of a disk.
	Operation string `json:"operation,omitempty"`
	// Program is the one at the other end of a pipe for which the program waits.
	Program string  `json:"program,omitempty"`
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"share"`
	// RequestMeanS is the mean time of the Requests that the device completed with this operation, of
	// all programs; InFlight how many it had at a time.
	Requests     int     `json:"requests,omitempty"`
	RequestMeanS float64 `json:"request_mean_s,omitempty"`
	InFlight     float64 `json:"in_flight,omitempty"`
	// Confidence is high for the kernel's own counters, medium or low for samples; absent for
	// unknown.
	Confidence verdict.Confidence `json:"confidence,omitempty"`
}
