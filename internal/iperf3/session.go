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

// Waits on the other side, each for one message.
const (
	answerTimeout = 10 * time.Second // a state, parameters, a stream's connection
	resultTimeout = 30 * time.Second // results: the far end may have to stop many streams first
	goodbyeTime   = 2 * time.Second  // the last state, which nobody needs any more
)

// control is a test's control connection, of either role.
type control struct {
	conn net.Conn
}

// expect waits for one of the states. Anything else that a server may say is an error
// that tells what happened.
func (c *control) expect(ctx context.Context, timeout time.Duration, wanted ...State) (State, error) {
	defer c.until(ctx, timeout)()
	s, err := ReadState(c.conn)
	if err != nil {
		return 0, c.because(ctx, err, fmt.Sprintf("waiting for %v", wanted[0]))
	}
	for _, w := range wanted {
		if s == w {
			return s, nil
		}
	}
	return s, c.refusal(s, wanted[0])
}

func (c *control) refusal(s, wanted State) error {
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
	return fmt.Errorf("%v where %v belongs: the far end does not speak iperf3's protocol", s, wanted)
}

func (c *control) readFrame(ctx context.Context, timeout time.Duration, limit int, what string) ([]byte, error) {
	defer c.until(ctx, timeout)()
	text, err := ReadFrame(c.conn, limit)
	if err != nil {
		return nil, c.because(ctx, err, "reading "+what)
	}
	return text, nil
}

func (c *control) send(ctx context.Context, s State) error {
	defer c.until(ctx, answerTimeout)()
	if err := WriteState(c.conn, s); err != nil {
		return c.because(ctx, err, fmt.Sprintf("sending %v", s))
	}
	return nil
}

func (c *control) sendFrame(ctx context.Context, v any, what string) error {
	defer c.until(ctx, answerTimeout)()
	if err := WriteFrame(c.conn, v); err != nil {
		return c.because(ctx, err, "sending "+what)
	}
	return nil
}

// until bounds the next reads and writes by a time and by ctx; the returned function
// lifts the bound.
func (c *control) until(ctx context.Context, timeout time.Duration) (lift func()) {
	c.conn.SetDeadline(time.Now().Add(timeout))
	stop := context.AfterFunc(ctx, func() { c.conn.SetDeadline(time.Unix(1, 0)) })
	return func() {
		stop()
		if ctx.Err() == nil {
			c.conn.SetDeadline(time.Time{})
		}
	}
}

// because says what went wrong on the control connection in words.
func (c *control) because(ctx context.Context, err error, doing string) error {
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

// closedError is a far end that hung up without a word.
type closedError struct {
	text string
	err  error
}

func (e *closedError) Error() string { return e.text }
func (e *closedError) Unwrap() error { return e.err }
