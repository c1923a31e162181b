package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/bulk"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// Error is a failure to measure with a far end, with a suggested action.
type Error struct {
	Address string
	Err     error
	Hint    string
}

func (e *Error) Error() string { return e.Address + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Try returns the suggested action.
func (e *Error) Try() string { return e.Hint }

// OtherServerError reports that the server is not a fullpipe server.
type OtherServerError struct {
	Iperf3 bool
	Server string
}

func (s *OtherServerError) Error() string { return s.Server + " listens there, not a fullpipe server" }

// readOtherServer identifies the server by its first bytes.
func readOtherServer(conn net.Conn, first byte) error {
	switch first {
	case AnswerBusy:
		return errBusy
	case AnswerIperf3, answerIperf3Busy:
		return &OtherServerError{Iperf3: true, Server: "an iperf3 server"}
	}
	text := []byte{first}
	conn.SetReadDeadline(time.Now().Add(time.Second))
	more := make([]byte, 23)
	n, _ := conn.Read(more)
	text = append(text, more[:n]...)
	switch {
	case strings.HasPrefix(string(text), "SSH-"):
		return &OtherServerError{Server: "an SSH server"}
	case strings.HasPrefix(string(text), "HTTP/"):
		return &OtherServerError{Server: "a web server"}
	}
	return &OtherServerError{Server: fmt.Sprintf("an unknown server that sent %.40q", text)}
}

// codedError is an error with a code for programs.
type codedError struct{ code, text string }

func (c *codedError) Error() string { return c.text }

// Code returns one of the codes of docs/exit-status.md.
func (c *codedError) Code() string { return c.code }

var errBusy error = &codedError{"busy", "the server has as many clients as it takes"}

// silentError reports that nothing arrived within a timeout.
type silentError struct{ within time.Duration }

// Code returns one of the codes of docs/exit-status.md.
func (s *silentError) Code() string { return "timeout" }

func (s *silentError) Error() string { return fmt.Sprintf("no answer within %v", s.within) }

// dataConnectionError reports a data connection that could not be opened, while the control connection works.
type dataConnectionError struct {
	address  string
	err      error
	separate bool // the server opened a port for it
}

func (d *dataConnectionError) Error() string {
	return "data connection to " + d.address + ": " + d.err.Error()
}
func (d *dataConnectionError) Unwrap() error { return d.err }

// Simplify shortens a connection error. within is the timeout that was set.
func Simplify(err error, within time.Duration) error {
	var dns *net.DNSError
	var timeout net.Error
	var dial *socket.DialError
	var call *os.SyscallError
	var data *dataConnectionError
	switch {
	case errors.As(err, &data):
		return data
	case errors.As(err, &dial) && len(dial.Attempts) > 1:
		return dial
	case errors.As(err, &dns) && dns.IsNotFound:
		return &codedError{"unknown-host", "no such host: " + dns.Name}
	case errors.As(err, &dns) && !dns.IsTimeout:
		return &codedError{"unknown-host", lookupError(dns)}
	case errors.Is(err, syscall.ECONNREFUSED):
		return syscall.ECONNREFUSED
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return &silentError{within}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return &bulk.ClosedError{Err: err}
	case errors.As(err, &call) && call.Syscall == "connect":
		return call.Err
	}
	return err
}

// lookupError describes a failed name lookup without the resolver's system calls.
func lookupError(e *net.DNSError) string {
	why := e.Err[strings.LastIndex(e.Err, ": ")+1:]
	if e.Server == "" {
		return "no name server resolves " + e.Name + ": " + strings.TrimSpace(why)
	}
	return "the name server " + e.Server + " does not resolve " + e.Name + ": " + strings.TrimSpace(why)
}

// unreachableHint returns the suggested action for a host that has no address or does not respond, "" for other
// errors.
func unreachableHint(err error) string {
	var silent *silentError
	var timeout net.Error
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns), strings.HasPrefix(err.Error(), "no such host"):
		return "give the host's address or full name"
	case errors.As(err, &silent), errors.As(err, &timeout) && timeout.Timeout():
		return "check that the host is up and that no firewall blocks the port"
	}
	return ""
}

// NoServerError is a failed connection to another program's server.
type NoServerError struct {
	Program string // "iperf3"
	Address string
	Timeout time.Duration // of the connection
	Start   string        // the suggested action unless a better one is known
	Err     error
}

func (e *NoServerError) Error() string {
	return fmt.Sprintf("no %s server at %s: %v", e.Program, e.Address, Simplify(e.Err, e.Timeout))
}
func (e *NoServerError) Unwrap() error { return e.Err }

// Try returns the suggested action.
func (e *NoServerError) Try() string {
	var closer interface{ Try() string }
	if errors.As(e.Err, &closer) {
		return closer.Try()
	}
	return cmp.Or(unreachableHint(e.Err), e.Start)
}

// hint returns the suggested action for an error of connecting or measuring.
func hint(err error) string {
	var other *OtherServerError
	var version *versionError
	var option *socket.OptionError
	var closed *bulk.ClosedError
	var family *socket.FamilyError
	var data *dataConnectionError
	var address *AddressError
	switch {
	case errors.As(err, &address):
		return "connect from an address of the key's networks, or add " + address.From.String() + " to them"
	case errors.As(err, &data) && data.separate:
		_, port, _ := net.SplitHostPort(data.address)
		return "let firewalls pass the TCP ports that the far system chooses for this test, here " + port +
			" (Linux: 32768 to 60999), leave out the far end's window and MSS, or measure through ssh://HOST --tunnel"
	case errors.As(err, &family):
		return family.Try()
	case errors.As(err, &option):
		return option.Hint
	case errors.Is(err, ErrWrongKey):
		return "give the key that the server printed at its start with --key, --key-file or FULLPIPE_KEY"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "start fullpipe serve there, or give its port as HOST:PORT"
	case errors.As(err, &other) && other.Iperf3:
		return "start fullpipe serve there on another port (--listen :5202) and give it as HOST:5202"
	case errors.As(err, &other):
		return "give the port of fullpipe serve as HOST:PORT"
	case errors.As(err, &version):
		return version.try()
	case errors.As(err, &closed):
		return "check that fullpipe serve still runs there, and read its log"
	case errors.Is(err, errBusy):
		return "try later, or start your own server on another port"
	}
	return unreachableHint(err)
}
