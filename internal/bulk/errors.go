package bulk

import (
	"errors"
	"io"
	"syscall"
)

// ErrStalled reports a transfer that made no progress for too long.
var ErrStalled = errors.New("the transfer stalled: no byte got through any more")

// ClosedError reports that the far end ended a connection that was still needed.
type ClosedError struct{ Err error }

// Code is one of the codes of docs/exit-status.md.
func (c *ClosedError) Code() string { return "closed" }

func (c *ClosedError) Error() string { return "the far end closed the connection" }
func (c *ClosedError) Unwrap() error { return c.Err }

// isReset reports whether err means that the far end reset the connection. shutdown(2) then
// returns ENOTCONN.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ENOTCONN)
}

// closed returns a ClosedError for an err that means that the far end left.
func closed(err error) error {
	if isReset(err) || errors.Is(err, io.EOF) {
		return &ClosedError{err}
	}
	return err
}
