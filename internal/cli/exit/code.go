package exit

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// codes are the kinds of failure that programs can tell apart: error.code of every JSON
// object. A code is never renamed; docs/exit-status.md has them for users. Where there is
// no test here, the error itself knows.
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
	{"not-fullpipe", isA[*probe.StrangerError]},
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
