//go:build linux && !amd64

package waits

// Calls that only older architectures have: no number is theirs.
const (
	callPoll   = -2
	callSelect = -3
	callEpoll  = -4
)
