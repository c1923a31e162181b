package iperf3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// Timeouts for one message of the far end.
const (
	answerTimeout = 10 * time.Second // a state, parameters, a stream's connection
	resultTimeout = 30 * time.Second // results; the far end may first stop many streams
	goodbyeTime   = 2 * time.Second  // the last state, which nothing depends on
)

// control is the control connection of a test, in either role.
type control struct {
	conn net.Conn
}

// expect waits for one of the wanted states. Other states return an error.
func (c *control) expect(ctx context.Context, timeout time.Duration, wanted ...State) (State, error) {
	defer c.withTimeout(ctx, timeout)()
	s, err := ReadState(c.conn)
	if err != nil {
		return 0, c.explainError(ctx, err, fmt.Sprintf("waiting for %v", wanted[0]))
	}
	for _, w := range wanted {
		if s == w {
			return s, nil
		}
	}
	return s, c.stateError(s, wanted[0])
}

func (c *control) stateError(s, wanted State) error {
	switch s {
	case AccessDenied:
		return ErrBusy
	case ServerError:
		c.conn.SetReadDeadline(time.Now().Add(goodbyeTime))
		return readRemoteError(c.conn)
	case ServerTerminate:
		return errors.New("the iperf3 server was stopped")
	case ClientTerminate:
		return errors.New("the iperf3 client was stopped")
	}
	return fmt.Errorf("got %v instead of %v: the far end does not speak iperf3's protocol", s, wanted)
}

func (c *control) readFrame(ctx context.Context, timeout time.Duration, limit int, object string) ([]byte, error) {
	defer c.withTimeout(ctx, timeout)()
	text, err := ReadFrame(c.conn, limit)
	if err != nil {
		return nil, c.explainError(ctx, err, "reading "+object)
	}
	return text, nil
}

func (c *control) send(ctx context.Context, s State) error {
	defer c.withTimeout(ctx, answerTimeout)()
	if err := WriteState(c.conn, s); err != nil {
		return c.explainError(ctx, err, fmt.Sprintf("sending %v", s))
	}
	return nil
}

func (c *control) sendFrame(ctx context.Context, v any, object string) error {
	defer c.withTimeout(ctx, answerTimeout)()
	if err := WriteFrame(c.conn, v); err != nil {
		return c.explainError(ctx, err, "sending "+object)
	}
	return nil
}

// withTimeout sets a deadline for the next reads and writes and applies ctx. lift removes both.
func (c *control) withTimeout(ctx context.Context, timeout time.Duration) (lift func()) {
	c.conn.SetDeadline(time.Now().Add(timeout))
	stop := context.AfterFunc(ctx, func() { c.conn.SetDeadline(time.Unix(1, 0)) })
	return func() {
		stop()
		if ctx.Err() == nil {
			c.conn.SetDeadline(time.Time{})
		}
	}
}

// explainError describes an error on the control connection.
func (c *control) explainError(ctx context.Context, err error, doing string) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("no answer from %v in time while %s", c.conn.RemoteAddr(), doing)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &closedError{fmt.Sprintf("%v closed the connection while %s", c.conn.RemoteAddr(), doing), err}
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return &closedError{fmt.Sprintf("%v reset the connection while %s", c.conn.RemoteAddr(), doing), err}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// closedError reports that the far end closed or reset the connection.
type closedError struct {
	text string
	err  error
}

func (e *closedError) Error() string { return e.text }
func (e *closedError) Unwrap() error { return e.err }
