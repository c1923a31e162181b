package iperf3

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
)

// Code is what an iperf3 server says when it refuses or gives up.
type Code int32

const (
	CodeRate         Code = 27  // rate above the server's limit
	CodeDuration     Code = 37  // duration above the server's maximum
	CodeParams       Code = 114 // parameters could not be read
	CodeAccessDenied Code = 121 // busy
	CodeMSS          Code = 123 // the maximum segment size could not be set
	CodeBuffer       Code = 124 // the socket buffer could not be set
	CodeCongestion   Code = 134 // the congestion control could not be set
	CodeClipped      Code = 141 // the socket buffer came out smaller than asked
	CodeAuth         Code = 142 // a name and password are wanted, or were wrong
	CodeNoData       Code = 144 // no data arrived
	CodeTimeout      Code = 160 // the server's time for a test ran out
)

var codeTexts = map[Code]string{
	CodeRate:         "the rate is above its limit",
	CodeDuration:     "the duration is above its maximum",
	CodeParams:       "it could not read the parameters",
	CodeAccessDenied: "it is busy with another test",
	CodeMSS:          "it could not set the maximum segment size",
	CodeBuffer:       "it could not set the socket buffer",
	CodeCongestion:   "it does not have that congestion control",
	CodeClipped:      "its system gives a smaller socket buffer than asked",
	CodeAuth:         "it wants a user and a password",
	CodeNoData:       "no data reached it",
	CodeTimeout:      "its time for a test ran out",
}

// RemoteError is a far end's refusal.
type RemoteError struct {
	Code  Code
	Errno int32 // in the far system's numbers; 0: none came
}

func (e *RemoteError) Error() string {
	text, known := codeTexts[e.Code]
	if !known {
		text = fmt.Sprintf("error %d", int32(e.Code))
	}
	if e.Errno != 0 {
		text += fmt.Sprintf(" (its errno %d)", e.Errno)
	}
	return "the iperf3 server refused: " + text
}

// Try names the way out.
func (e *RemoteError) Try() string {
	switch e.Code {
	case CodeAccessDenied:
		return "wait for the other test to end, or start a second server: iperf3 -s -p 5202"
	case CodeBuffer, CodeClipped:
		return "a smaller buffer, or raise net.core.rmem_max and net.core.wmem_max at the far end"
	case CodeRate, CodeDuration:
		return "a lower rate or a shorter --time"
	case CodeCongestion:
		return "a congestion control that the far end has"
	case CodeAuth:
		return "a server without --rsa-private-key-path"
	}
	return ""
}

// RefusedError is a test that this end's server refused or ended, and what it told the client.
type RefusedError struct {
	Code Code
	From netip.AddrPort
	Err  error
}

func (e *RefusedError) Error() string { return fmt.Sprintf("refused %v: %v", e.From, e.Err) }
func (e *RefusedError) Unwrap() error { return e.Err }

// ErrBusy is a server that answers ACCESS_DENIED.
var ErrBusy = &RemoteError{Code: CodeAccessDenied}

// unreachable is a server that no connection could be made to.
type unreachable struct {
	address string
	err     error
}

func (e *unreachable) Error() string {
	return fmt.Sprintf("no iperf3 server at %s: %v", e.address, e.err)
}
func (e *unreachable) Unwrap() error { return e.err }

// Try names the way out.
func (e *unreachable) Try() string {
	var closer interface{ Try() string }
	if errors.As(e.err, &closer) {
		return closer.Try()
	}
	return "start iperf3 -s there, or give its port as iperf3://HOST:PORT"
}

// readRemoteError reads what follows SERVER_ERROR: a code and an errno, or from old
// servers the code alone.
func readRemoteError(r io.Reader) error {
	var b [8]byte
	n, err := io.ReadFull(r, b[:])
	if n < 4 {
		return fmt.Errorf("the iperf3 server gave up and did not say why: %w", errors.Join(err))
	}
	e := &RemoteError{Code: Code(binary.BigEndian.Uint32(b[:]))}
	if n == 8 {
		e.Errno = int32(binary.BigEndian.Uint32(b[4:]))
	}
	return e
}

// writeRemoteError sends SERVER_ERROR with its two numbers.
func writeRemoteError(w io.Writer, code Code, errno int32) error {
	minusTwo := ServerError
	b := []byte{byte(minusTwo)}
	b = binary.BigEndian.AppendUint32(b, uint32(code))
	b = binary.BigEndian.AppendUint32(b, uint32(errno))
	_, err := w.Write(b)
	return err
}
