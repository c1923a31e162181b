//go:build !linux || portable

package socket

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// This implementation serves every system; on Linux the tag portable tries it.

// stream here moves payload inside the waits: the runtime's network poller has no call
// that tries without waiting. Time in the kernel therefore counts as waiting.
type stream struct {
	conn    *net.TCPConn
	watched bool // conn is somebody else's to close
	options Options
	payload []byte
	asked   int // for the next wait
	moved   int // of the last wait
	err     error

	mu          sync.Mutex // guards interrupted and the deadlines it sets
	interrupted chan struct{}
}

func (s *stream) open(conn *net.TCPConn, o Options) error {
	s.conn = conn
	s.options = o
	s.interrupted = make(chan struct{})
	s.payload = make([]byte, 256<<10)
	rand.NewChaCha8([32]byte{byte(rand.Uint32())}).Read(s.payload)
	err := adopt(conn, o)
	if err != nil {
		conn.Close()
	}
	return err
}

func adopt(conn *net.TCPConn, o Options) error {
	err := conn.SetNoDelay(o.NoDelay)
	if err == nil && (o.Congestion != "" || o.PacingBps > 0) {
		err = notSupported("congestion control and pacing of one socket")
	}
	if err == nil && o.SendBuffer > 0 {
		err = conn.SetWriteBuffer(o.SendBuffer)
	}
	return err
}

func (s *stream) watch(conn *net.TCPConn, o Options) error {
	s.conn = conn
	s.options = o
	s.watched = true
	return nil
}

func (s *stream) write(n int) (int, error)   { return s.take(n) }
func (s *stream) read(n int) (int, error)    { return s.take(n) }
func (s *stream) discard(n int) (int, error) { return s.take(n) }

// DropsUncopied: Discard removes bytes from a socket without copying them.
const DropsUncopied = false

func (s *stream) splice(int) (int, error) { return 0, notSupported("payload without copies") }

func (s *stream) batch(int, float64) bool { return false }

func (s *stream) take(n int) (int, error) {
	moved := s.moved
	err := s.err
	s.moved = 0
	s.err = nil
	s.asked = min(n, len(s.payload))
	if moved > 0 && err == io.EOF {
		s.err = err
		err = nil
	}
	return moved, err
}

func (s *stream) waitWrite(timeout time.Duration) error {
	return s.move(timeout, s.conn.SetWriteDeadline, s.conn.Write)
}

func (s *stream) waitRead(timeout time.Duration) error {
	return s.move(timeout, s.conn.SetReadDeadline, s.conn.Read)
}

func (s *stream) move(timeout time.Duration, setDeadline func(time.Time) error, move func([]byte) (int, error)) error {
	s.mu.Lock()
	select {
	case <-s.interrupted:
		s.mu.Unlock()
		return ErrInterrupted
	default:
		setDeadline(time.Now().Add(timeout))
		s.mu.Unlock()
	}
	s.moved, s.err = move(s.payload[:s.asked])
	if errors.Is(s.err, os.ErrDeadlineExceeded) {
		s.err = nil
	}
	select {
	case <-s.interrupted:
		return ErrInterrupted
	default:
		return nil
	}
}

// waitClosed reads: a far end that only receives has nothing else to say.
func (s *stream) waitClosed(timeout time.Duration) (bool, error) {
	s.asked = 1
	err := s.move(timeout, s.conn.SetReadDeadline, s.conn.Read)
	closed := s.err != nil
	s.moved = 0
	s.err = nil
	return closed, err
}

func (s *stream) sleep(d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-s.interrupted:
		return ErrInterrupted
	}
}

func (s *stream) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.interrupted:
	default:
		close(s.interrupted)
		s.conn.SetDeadline(time.Unix(1, 0))
	}
}

func (s *stream) closeWrite() error         { return s.conn.CloseWrite() }
func (s *stream) setNoDelay(on bool) error  { return s.conn.SetNoDelay(on) }
func (s *stream) outstanding() (int, error) { return 0, notSupported("unacknowledged bytes") }

func (s *stream) sample(into *transfer.Sample, _ bool) error {
	*into = transfer.Sample{}
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return err
	}
	// A system without statistics leaves Have empty; the program's own counters remain.
	if _, err := Account(raw, into); errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (s *stream) describe() transfer.Stream {
	d := transfer.Stream{
		Local: AddrPort(s.conn.LocalAddr()), Remote: AddrPort(s.conn.RemoteAddr()),
		SendBuffer:    transfer.Buffer{Requested: s.options.SendBuffer},
		ReceiveBuffer: transfer.Buffer{Requested: s.options.ReceiveBuffer},
	}
	raw, err := s.conn.SyscallConn()
	if err != nil {
		return d
	}
	var now transfer.Sample
	if h, err := Account(raw, &now); err == nil {
		d.Handshake = h
	}
	if send, receive, err := Buffers(raw); err == nil {
		d.SendBuffer.Granted = send
		d.ReceiveBuffer.Granted = receive
		d.SendBuffer.Clipped = send < d.SendBuffer.Requested
		d.ReceiveBuffer.Clipped = receive < d.ReceiveBuffer.Requested
	}
	return d
}

func (s *stream) reset() { s.conn.SetLinger(0) }

func (s *stream) close() error {
	if s.watched {
		return nil
	}
	return s.conn.Close()
}
