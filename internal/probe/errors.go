package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/engine"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// Error is why a far end could not be measured with, and what to try.
type Error struct {
	Address string
	Err     error
	Hint    string
}

func (e *Error) Error() string { return e.Address + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Try is what the user may do about it.
func (e *Error) Try() string { return e.Hint }

// StrangerError says that something else than a fullpipe server answers.
type StrangerError struct {
	Iperf3 bool
	What   string
}

func (s *StrangerError) Error() string { return s.What + " answers there, not a fullpipe server" }

// readStranger names what answered by its first bytes.
func readStranger(conn net.Conn, first byte) error {
	switch first {
	case AnswerBusy:
		return errBusy
	case AnswerIperf3, answerIperf3Busy:
		return &StrangerError{Iperf3: true, What: "an iperf3 server"}
	}
	text := []byte{first}
	conn.SetReadDeadline(time.Now().Add(time.Second))
	more := make([]byte, 23)
	n, _ := conn.Read(more)
	text = append(text, more[:n]...)
	switch {
	case strings.HasPrefix(string(text), "SSH-"):
		return &StrangerError{What: "an SSH server"}
	case strings.HasPrefix(string(text), "HTTP/"):
		return &StrangerError{What: "a web server"}
	}
	return &StrangerError{What: fmt.Sprintf("something that says %.40q", text)}
}

// coded is an error of a kind that programs can tell from others.
type coded struct{ code, text string }

func (c *coded) Error() string { return c.text }

// Code is one of the codes of docs/exit-status.md.
func (c *coded) Code() string { return c.code }

var errBusy error = &coded{"busy", "the server has as many clients as it takes"}

// silentError says that nothing came within the time for it.
type silentError struct{ within time.Duration }

// Code is one of the codes of docs/exit-status.md.
func (s *silentError) Code() string { return "timeout" }

func (s *silentError) Error() string { return fmt.Sprintf("no answer within %v", s.within) }

// plain says in the fewest words what went wrong with a connection that was given so long.
func plain(err error, within time.Duration) error {
	var dns *net.DNSError
	var timeout net.Error
	var dial *socket.DialError
	switch {
	case errors.As(err, &dial) && len(dial.Attempts) > 1:
		return dial
	case errors.As(err, &dns) && dns.IsNotFound:
		return &coded{"unknown-host", "no such host: " + dns.Name}
	case errors.As(err, &dns) && !dns.IsTimeout:
		return &coded{"unknown-host", unasked(dns)}
	case errors.Is(err, syscall.ECONNREFUSED):
		return syscall.ECONNREFUSED
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return &silentError{within}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return &engine.ClosedError{Err: err}
	}
	return err
}

// unasked says why an address could not be asked for, without the resolver's own calls.
func unasked(e *net.DNSError) string {
	why := e.Err[strings.LastIndex(e.Err, ": ")+1:]
	if e.Server == "" {
		return "no name server tells the address of " + e.Name + ": " + strings.TrimSpace(why)
	}
	return "the name server " + e.Server + " does not tell the address of " + e.Name + ": " + strings.TrimSpace(why)
}

// hint is what to try about an error of connecting or measuring.
func hint(err error) string {
	var stranger *StrangerError
	var version *versionError
	var silent *silentError
	var timeout net.Error
	var dns *net.DNSError
	var option *socket.OptionError
	var closed *engine.ClosedError
	var family *socket.FamilyError
	switch {
	case errors.As(err, &family):
		return family.Try()
	case errors.As(err, &option):
		return option.Hint
	case errors.Is(err, ErrWrongKey):
		return "the key that this server printed when it started, with --key, --key-file or FULLPIPE_KEY"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "start fullpipe serve there, or give its port as HOST:PORT"
	case errors.As(err, &stranger) && stranger.Iperf3:
		return "start fullpipe serve there on another port (--listen :5202) and give it as HOST:5202"
	case errors.As(err, &stranger):
		return "the port that fullpipe serve listens on, as HOST:PORT"
	case errors.As(err, &version):
		return version.try()
	case errors.As(err, &silent), errors.As(err, &timeout) && timeout.Timeout():
		return "whether the host is up and a firewall lets the port through"
	case errors.As(err, &closed):
		return "whether fullpipe serve still runs there, and what it says"
	case errors.Is(err, errBusy):
		return "again later, or a server of your own on another port"
	case errors.As(err, &dns), strings.HasPrefix(err.Error(), "no such host"):
		return "the host's address, or its full name"
	}
	return ""
}
