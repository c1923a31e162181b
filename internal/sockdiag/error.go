package sockdiag

// Error is that the kernel was not asked, or did not answer.
type Error struct{ Err error }

func (e *Error) Error() string { return "sock_diag: " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Try says what a person can do.
func (e *Error) Try() string {
	return "on the host itself: a container's seccomp filter may withhold netlink sockets, and a kernel may lack " +
		"sock_diag (modprobe tcp_diag inet_diag)"
}
