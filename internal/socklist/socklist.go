// Package socklist lists the TCP connections of macOS, by its protocol control blocks, and of Windows, by its extended
// statistics. FreeBSD's list has windows, but neither bytes nor sequence numbers. None reports a connection's end, and
// only Windows counts retransmitted bytes. Neither was run on a real system: the layouts are those of the systems'
// headers, which tests compare with a compiler's and with lists made by hand.
package socklist

import (
	"net/netip"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Options permit changes that reading needs.
type Options struct {
	// Count lets Windows count each connection's traffic, which an Administrator has to allow. Close turns counters off
	// that Open turned on; other readers of these counters then find them off. Elsewhere it means nothing.
	Count bool
}

// NotCountedError reports that Windows does not count.
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

// Socket is the record of one open connection. Sizes are bytes.
type Socket struct {
	Key           uint64 // unique among all connections of this list
	Local, Remote netip.AddrPort
	PID           int    // of the program that used it last; 0: not known
	UID           uint32 // 0: not known
	Established   bool   // neither end has closed
	PeerClosed    bool
	Handshake     transfer.Handshake
	// Sample is without At and without the clocks (HaveLimits), but ReceiveLimited is the system's where WindowClock
	// says so. Acked is payload alone, without SYN and FIN.
	Sample      transfer.Sample
	WindowClock bool
	// Unread waits for the program. Unacked was written by it and is not yet acknowledged; it takes SendQueued of the send
	// buffer. SendBuffer and ReceiveBuffer are the sizes of the socket's buffers; 0: not known.
	Unread, Unacked, SendQueued, SendBuffer, ReceiveBuffer int64
}

// Want says which connections are asked about, by their ends.
type Want func(local, remote netip.AddrPort) bool
