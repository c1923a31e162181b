package bpf

import "strings"

// NotPermittedError reports that this process may not load programs for tracing.
type NotPermittedError struct {
	Missing []string // capabilities; empty: the kernel refused although it has them
	Err     error    // nil: not tried
}

func (e *NotPermittedError) Error() string {
	switch {
	case len(e.Missing) > 0:
		return "eBPF for tracing needs root, or " + strings.Join(e.Missing, " and ")
	default:
		return "the kernel refuses eBPF for tracing: " + e.Err.Error()
	}
}

func (e *NotPermittedError) Unwrap() error { return e.Err }
