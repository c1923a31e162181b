package socket

import (
	"errors"
	"net"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// ErrInterrupted ends a wait on a Stream that Interrupt was called on.
var ErrInterrupted = errors.New("interrupted")

// BestWrite is the size of a write that costs least CPU where the program asks for none.
const BestWrite = 4 << 20

// Stream is a connected TCP socket that carries payload nobody reads. One goroutine may
// move its payload while another one samples it; Interrupt may be called at any time.
// Close only after both have ended.
type Stream struct{ stream }

// NewStream takes conn over, also when it fails: conn is closed and its socket lives on
// in the Stream. The options that matter after the handshake are set (again): those a
// listener could not know, and TCP_NODELAY, which Go sets and programs do not.
func NewStream(conn *net.TCPConn, o Options) (*Stream, error) {
	s := &Stream{}
	if err := s.open(conn, o); err != nil {
		return nil, err
	}
	return s, nil
}

// Watch makes a Stream of a connection that a program goes on using: for Sample,
// Describe and Close only. The program's connection stays open and as it is.
func Watch(conn *net.TCPConn, o Options) (*Stream, error) {
	s := &Stream{}
	if err := s.watch(conn, o); err != nil {
		return nil, err
	}
	return s, nil
}

// Adopt sets the options of an accepted connection that matter after the handshake.
func Adopt(conn *net.TCPConn, o Options) error { return adopt(conn, o) }

// Write passes at most n bytes of random payload to the kernel and returns how many it accepted: 0 when there is no
// space.
func (s *Stream) Write(n int) (int, error) { return s.write(n) }

// Splice passes at most n bytes of random payload to the kernel by reference, without copying them, and returns how
// many it accepted: 0 when there is no space. The error is ErrNotSupported where the system cannot do that.
func (s *Stream) Splice(n int) (int, error) { return s.splice(n) }

// Read copies at most n bytes out of the socket, as a program does that uses them, and drops them: 0 when there are
// none, io.EOF at the end.
func (s *Stream) Read(n int) (int, error) { return s.read(n) }

// Discard takes at most n bytes out of the socket without copying them where the system
// can: 0 when there are none, io.EOF at the end.
func (s *Stream) Discard(n int) (int, error) { return s.discard(n) }

// WaitWrite waits for space to write into. It returns nil after the timeout too.
func (s *Stream) WaitWrite(timeout time.Duration) error { return s.waitWrite(timeout) }

// WaitRead waits for bytes to read or the end. It returns nil after the timeout too.
func (s *Stream) WaitRead(timeout time.Duration) error { return s.waitRead(timeout) }

// Batch makes WaitRead wait for that many unread bytes instead of one. It returns false, and changes nothing, where the
// system cannot do that, or where as much unread could fill the receive buffer of a connection with that rate in bytes
// per second.
func (s *Stream) Batch(bytes int, rate float64) bool { return s.batch(bytes, rate) }

// WaitClosed waits until the far end has reset or closed the connection completely and reports whether it has. It
// returns false after the timeout.
func (s *Stream) WaitClosed(timeout time.Duration) (bool, error) { return s.waitClosed(timeout) }

// Sleep pauses for d, or until Interrupt.
func (s *Stream) Sleep(d time.Duration) error { return s.sleep(d) }

// Interrupt makes the waits on this Stream answer ErrInterrupted, now and later.
func (s *Stream) Interrupt() { s.interrupt() }

// CloseWrite ends what this side sends.
func (s *Stream) CloseWrite() error { return s.closeWrite() }

// SetNoDelay sets TCP_NODELAY.
func (s *Stream) SetNoDelay(on bool) error { return s.setNoDelay(on) }

// Outstanding is how many bytes were written and not yet acknowledged.
func (s *Stream) Outstanding() (int, error) { return s.outstanding() }

// Sample reads the kernel's statistics. sender selects the queue of Queued. The caller fills At and the program's own
// counters. It allocates nothing.
func (s *Stream) Sample(into *transfer.Sample, sender bool) error { return s.sample(into, sender) }

// Describe returns the socket's options and the result of the handshake.
func (s *Stream) Describe() transfer.Stream { return s.describe() }

// Reset makes Close discard what is still unsent and reset the connection.
func (s *Stream) Reset() { s.reset() }

// Close releases the socket.
func (s *Stream) Close() error { return s.close() }
