// Package exit has the exit statuses of fullpipe and formats errors for users.
package exit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// OwnFailure is the status of lab and exec if they fail themselves. Their other statuses are their command's.
const OwnFailure = 125

// Exit statuses of the contract. lab and exec pass on their command's own.
const (
	Done        = 0
	Failed      = 1
	Misused     = 2
	No          = 3 // done, but the result is "no"
	Interrupted = 130
)

// UsageError is the error of a bad argument, with its fault and a suggestion.
type UsageError struct{ Argument, Message, Try string }

func (e *UsageError) Error() string {
	if e.Argument == "" {
		return e.Message
	}
	return e.Argument + ": " + e.Message
}

// Status ends a command whose output is already written.
type Status int

func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// StatusError is a failure with an exit status of its own.
type StatusError struct {
	error
	status int
}

func (e *StatusError) Unwrap() error { return e.error }

// Describe returns the document of an error and the exit status.
func Describe(ctx context.Context, err error) (record.Failure, int) {
	failure := record.Failure{Code: Code(err), Message: Message(err)}
	status := Failed
	var usage *UsageError
	var withStatus *StatusError
	var hint interface{ Try() string }
	switch {
	case errors.As(err, &usage) && ctx.Err() == nil: // an interrupted read is no usage error
		failure = record.Failure{Code: "usage", Argument: usage.Argument, Message: usage.Message, Try: usage.Try}
		status = Misused
	case ctx.Err() != nil:
		failure = record.Failure{Code: "interrupted", Message: "interrupted"}
		status = Interrupted
	}
	if errors.As(err, &withStatus) {
		status = withStatus.status
	}
	if errors.As(err, &hint) {
		failure.Try = hint.Try()
	}
	return failure, status
}

// Message is an error on one line, also where several were joined.
func Message(err error) string {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || !strings.Contains(err.Error(), "\n") {
		return Plain(err)
	}
	var parts []string
	for _, e := range joined.Unwrap() {
		parts = append(parts, Message(e))
	}
	return strings.Join(parts, "; ")
}

// Usage returns the error of a bad argument with its fault and a suggestion.
func Usage(argument, message, try string) *UsageError { return &UsageError{argument, message, try} }

// WithStatus returns a failure with an exit status of its own.
func WithStatus(err error, status int) *StatusError { return &StatusError{err, status} }

// codes are the kinds of failure for programs: error.code of every JSON
// object. A code is never renamed; docs/exit-status.md has them for users. An error of a kind
// without a test here has the code itself.
var codes = []struct {
	code string
	is   func(error) bool
}{
	{"usage", isA[*UsageError]},
	{"interrupted", isOne(context.Canceled)},
	{"not-supported", isOne(socket.ErrNotSupported, errors.ErrUnsupported)},
	{"unknown-host", isA[*net.DNSError]},
	{"wrong-key", isOne(probe.ErrWrongKey)},
	{"busy", nil},
	{"not-fullpipe", isA[*probe.OtherServerError]},
	{"refused", isOne(syscall.ECONNREFUSED)},
	{"closed", isOne(syscall.ECONNRESET, syscall.EPIPE, io.ErrUnexpectedEOF)},
	{"timeout", func(err error) bool {
		var t interface{ Timeout() bool }
		return isOne(context.DeadlineExceeded, os.ErrDeadlineExceeded, syscall.ETIMEDOUT)(err) || errors.As(err, &t) &&
			t.Timeout()
	}},
	{"unreachable", isOne(syscall.EHOSTUNREACH, syscall.ENETUNREACH)},
	{"address-in-use", isOne(syscall.EADDRINUSE)},
	{"not-permitted", isOne(fs.ErrPermission)},
	{"no-space", isOne(syscall.ENOSPC)},
	{"not-found", isOne(fs.ErrNotExist)},
	{"memory", nil},
}

// Code is the code of an error; "failed" for any other kind.
func Code(err error) string {
	var own interface{ Code() string }
	if errors.As(err, &own) {
		return own.Code()
	}
	for _, c := range codes {
		if c.is != nil && c.is(err) {
			return c.code
		}
	}
	return "failed"
}

func isOne(targets ...error) func(error) bool {
	return func(err error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
}

func isA[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}
