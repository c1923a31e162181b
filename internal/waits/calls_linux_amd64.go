package waits

import "golang.org/x/sys/unix"

// Calls that only older architectures have.
const (
	callPoll   = unix.SYS_POLL
	callSelect = unix.SYS_SELECT
	callEpoll  = unix.SYS_EPOLL_WAIT
)
