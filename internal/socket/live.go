package socket

import (
	"syscall"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Ceilings bound what a socket of this host can get, in bytes as getsockopt tells them.
type Ceilings struct {
	// AutoSend and AutoReceive are how far the system's automatic sizing goes.
	AutoSend, AutoReceive int
	// Send and Receive are the most that SO_SNDBUF and SO_RCVBUF are granted.
	Send, Receive int
	// Factor is what the system grants for each byte asked: 2 on Linux, whose buffers
	// hold bookkeeping too, 1 elsewhere.
	Factor int
	// Clamped says that a living connection's window stays at what automatic sizing
	// reached until TCP_WINDOW_CLAMP is raised beside SO_RCVBUF.
	Clamped bool
}

// ReadCeilings answers ErrNotSupported where they are not known.
func ReadCeilings() (Ceilings, error) { return readCeilings() }

// Account reads the kernel's account of a connected TCP socket; At and what the program
// did are the caller's to fill. The handshake is nil where the system does not tell it.
func Account(c syscall.RawConn, s *transfer.Sample) (h *transfer.Handshake, err error) {
	err = onDescriptor(c, func(fd uintptr) error { h, err = account(fd, s); return err })
	return h, err
}

// Buffers tells the send and the receive buffer as granted now.
func Buffers(c syscall.RawConn) (send, receive int, err error) {
	err = onDescriptor(c, func(fd uintptr) error { send, receive, err = buffers(fd); return err })
	return send, receive, err
}

// Set gives a socket options at any time of its life; what is zero stays as it is.
// Buffers and congestion control act at once, a larger receive buffer only as far as
// the window scale of the handshake reaches, an MSS not any more.
func Set(c syscall.RawConn, o Options) error {
	return onDescriptor(c, func(fd uintptr) error { return apply(int(fd), o) })
}

// SetNotSentLowWater bounds the bytes that wait in the send buffer unsent
// (TCP_NOTSENT_LOWAT), so that a large buffer does not become a queue.
func SetNotSentLowWater(c syscall.RawConn, bytes int) error {
	return onDescriptor(c, func(fd uintptr) error { return setNotSentLowWater(fd, bytes) })
}

// onDescriptor runs f on the descriptor; after Close it answers net.ErrClosed.
func onDescriptor(c syscall.RawConn, f func(fd uintptr) error) error {
	var err error
	if cerr := c.Control(func(fd uintptr) { err = f(fd) }); cerr != nil {
		return cerr
	}
	return err
}
