package record

// Wait is the time that a program spent in one place.
type Wait struct {
	// Kind is cpu, run-queue, quota, disk, memory, network, process, peer, lock, sleep or unknown.
	Kind string `json:"kind"`
	// Object is a device, a file system, a program, an address or terminal.
	Object string `json:"object,omitempty"`
	// Program is the one at the other end of a pipe for which the program waits.
	Program string  `json:"program,omitempty"`
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"share"`
}
