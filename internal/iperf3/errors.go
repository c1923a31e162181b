package iperf3

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
)

// Code is the error code that an iperf3 server sends with SERVER_ERROR.
type Code int32

const (
	CodeRate         Code = 27  // rate above the server's limit
	CodeDuration     Code = 37  // duration above the server's maximum
	CodeParams       Code = 114 // parameters not readable
	CodeAccessDenied Code = 121 // busy
	CodeMSS          Code = 123 // the maximum segment size could not be set
	CodeBuffer       Code = 124 // the socket buffer could not be set
	CodeCongestion   Code = 134 // the congestion control could not be set
	CodeClipped      Code = 141 // the system granted a smaller socket buffer than requested
	CodeAuth         Code = 142 // authentication missing or failed
	CodeNoData       Code = 144 // no data arrived
	CodeTimeout      Code = 160 // the time limit of a test expired
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
	CodeAuth:         "it requires a user and a password",
	CodeNoData:       "no data reached it",
	CodeTimeout:      "its time for a test ran out",
}

// RemoteError is an error that the far end sent.
type RemoteError struct {
	Code  Code
	Errno int32 // in the far system's numbering; 0: none
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

// Try returns the suggested action.
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
		return "start the far end's iperf3 server without --rsa-private-key-path"
	}
	return ""
}

// RefusedError is a test that this server refused or ended, with the code that it sent.
type RefusedError struct {
	Code Code
	From netip.AddrPort
	Err  error
}

func (e *RefusedError) Error() string { return fmt.Sprintf("refused %v: %v", e.From, e.Err) }
func (e *RefusedError) Unwrap() error { return e.Err }

// ErrBusy is a server's ACCESS_DENIED.
var ErrBusy = &RemoteError{Code: CodeAccessDenied}

// readRemoteError reads the code and errno after SERVER_ERROR. Old servers send only the code.
func readRemoteError(r io.Reader) error {
	var b [8]byte
	n, err := io.ReadFull(r, b[:])
	if n < 4 {
		return fmt.Errorf("the iperf3 server failed without an error code: %w", errors.Join(err))
	}
	e := &RemoteError{Code: Code(binary.BigEndian.Uint32(b[:]))}
	if n == 8 {
		e.Errno = int32(binary.BigEndian.Uint32(b[4:]))
	}
	return e
}

// writeRemoteError sends SERVER_ERROR with a code and an errno.
func writeRemoteError(w io.Writer, code Code, errno int32) error {
	minusTwo := ServerError
	b := []byte{byte(minusTwo)}
	b = binary.BigEndian.AppendUint32(b, uint32(code))
	b = binary.BigEndian.AppendUint32(b, uint32(errno))
	_, err := w.Write(b)
	return err
}
