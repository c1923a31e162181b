package socket

import (
	"syscall"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Ceilings are the largest buffers of a socket on this host, in bytes as getsockopt returns them.
type Ceilings struct {
	// AutoSend and AutoReceive are how far the system's automatic sizing goes.
	AutoSend, AutoReceive int
	// Send and Receive are the most that SO_SNDBUF and SO_RCVBUF are granted.
	Send, Receive int
	// Factor is the granted bytes per requested byte: 2 on Linux, whose buffers include bookkeeping, 1 elsewhere.
	Factor int
	// Clamped reports that an open connection's window stays at the size that autotuning reached until TCP_WINDOW_CLAMP is
	// raised together with SO_RCVBUF.
	Clamped bool
}

// ReadCeilings returns ErrNotSupported where they are not known.
func ReadCeilings() (Ceilings, error) { return readCeilings() }

// Account reads the kernel's statistics of a connected TCP socket. The caller fills At and the program's own counters.
// The handshake is nil where the system does not report it.
func Account(c syscall.RawConn, s *transfer.Sample) (h *transfer.Handshake, err error) {
	err = onDescriptor(c, func(fd uintptr) error { h, err = account(fd, s); return err })
	return h, err
}

// Buffers returns the send and receive buffers as granted now.
func Buffers(c syscall.RawConn) (send, receive int, err error) {
	err = onDescriptor(c, func(fd uintptr) error { send, receive, err = buffers(fd); return err })
	return send, receive, err
}

// Set sets socket options at any time of a socket's life. Zero fields are left unchanged. Buffers and congestion
// control act at once, a larger receive buffer only as far as the window scale of the handshake allows; an MSS has no
// effect any more.
func Set(c syscall.RawConn, o Options) error {
	return onDescriptor(c, func(fd uintptr) error { return apply(int(fd), o) })
}

// SetNotSentLowWater bounds the bytes that wait in the send buffer unsent
// (TCP_NOTSENT_LOWAT), so that a large buffer does not become a queue.
func SetNotSentLowWater(c syscall.RawConn, bytes int) error {
	return onDescriptor(c, func(fd uintptr) error { return setNotSentLowWater(fd, bytes) })
}

// onDescriptor runs f on the descriptor. After Close it returns net.ErrClosed.
func onDescriptor(c syscall.RawConn, f func(fd uintptr) error) error {
	var err error
	if cerr := c.Control(func(fd uintptr) { err = f(fd) }); cerr != nil {
		return cerr
	}
	return err
}
