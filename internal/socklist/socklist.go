// Package socklist reads what systems other than Linux tell of all TCP connections at one moment: macOS
// its list of protocol control blocks, Windows its extended statistics. FreeBSD's list has windows, but
// neither bytes nor sequence numbers, so nothing that moves can be told from it. None tells of a
// connection's end, and how much was sent again only Windows. Neither was run on a real system: the
// layouts are those of the systems' headers, which tests hold against a compiler's and against lists
// made by hand.
package socklist

import (
	"net/netip"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Options say what may be done to read.
type Options struct {
	// Count lets Windows count what each connection does, which it does only where it was asked to, by an
	// Administrator. What was turned on is turned off by Close; whoever else reads these counters then finds them off.
	// Elsewhere it means nothing.
	Count bool
}

// NotCountedError says that Windows was not asked to count.
type NotCountedError struct{}

func (NotCountedError) Error() string {
	return "Windows counts nothing of a connection until it is asked to"
}

// Try says how to ask.
func (NotCountedError) Try() string {
	return "--count, as Administrator: counting is turned on for each connection, and off again at the end"
}

// Unwrap is socket.ErrNotSupported.
func (NotCountedError) Unwrap() error { return socket.ErrNotSupported }

// Socket is what is told of one connection that stands. Sizes are bytes.
type Socket struct {
	Key           uint64 // no other connection that this list told of has had it
	Local, Remote netip.AddrPort
	PID           int    // of the program that used it last; 0: not told
	UID           uint32 // 0 where it is not told
	Established   bool   // neither end has closed
	PeerClosed    bool
	Handshake     transfer.Handshake
	// Sample is without At and without the clocks (HaveLimits), but ReceiveLimited is the system's where WindowClock
	// says so. Acked is payload alone, without SYN and FIN.
	Sample      transfer.Sample
	WindowClock bool
	// Unread waits for the program; Unacked was written by it and not yet acknowledged, and takes SendQueued of the
	// send buffer. SendBuffer and ReceiveBuffer are the sizes of the socket's buffers; 0: not told.
	Unread, Unacked, SendQueued, SendBuffer, ReceiveBuffer int64
}

// Want says which connections are asked about, by their ends.
type Want func(local, remote netip.AddrPort) bool
