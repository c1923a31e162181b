package agent

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/fullpipe-net/fullpipe/internal/probe"
)

// UnreachableError reports that no address of the far end accepted the run's key.
type UnreachableError struct{ Attempts []Attempt }

// Attempt is a failed connection to an address of the far end.
type Attempt struct {
	To  netip.AddrPort
	Err error
}

// Error returns what happened at each address, for this host's owner.
func (e *UnreachableError) Error() string {
	texts := make([]string, len(e.Attempts))
	for i, a := range e.Attempts {
		texts[i] = a.Err.Error()
	}
	return strings.Join(texts, "\n")
}

// Codes returns the same for the hub, which chose the addresses: it learns of no third party's reply.
func (e *UnreachableError) Codes() string {
	texts := make([]string, len(e.Attempts))
	for i, a := range e.Attempts {
		texts[i] = a.To.String() + " " + codeOf(a.Err)
	}
	return strings.Join(texts, "; ")
}

// codeOf returns one of a closed list of words.
func codeOf(err error) string {
	var other *probe.OtherServerError
	var coded interface{ Code() string }
	var timeout net.Error
	var elsewhere *probe.AddressError
	switch {
	case errors.As(err, &other):
		return "another service"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout(),
		errors.As(err, &coded) && coded.Code() == "timeout":
		return "timed out"
	case errors.As(err, &coded) && coded.Code() == "busy":
		return "busy"
	case errors.As(err, &elsewhere):
		return "does not admit " + elsewhere.From.String()
	case errors.Is(err, probe.ErrWrongKey):
		return "another key"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "no route"
	}
	return "another service"
}
