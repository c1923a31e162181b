package socket

import (
	"net/netip"
	"syscall"
	"time"
)

// Repairs are a connection's counters since it began, and its round trips.
type Repairs struct {
	Retransmitted int64 // segments, SYN and SYN-ACK included
	Bytes         int64 // retransmitted payload; -1: not known
	// RTOs counts the retransmission timeouts (RFC 6298). -1: the system does not count them.
	RTOs        int64
	RTT, MinRTT time.Duration // smoothed and least; 0: not known
	MSS         int64         // payload of a full segment that this end sends, bytes
	Known       bool          // false: the system reports none of this
}

// Repairs reads the counters. It allocates nothing.
func (s *Stream) Repairs() Repairs { return s.repairs() }

// RepairsOf reads the counters of a connection that is no Stream.
func RepairsOf(conn syscall.Conn) Repairs { return repairsOf(conn) }

// Send passes bytes to the kernel and returns how many it accepted: 0 when there is no space.
func (s *Stream) Send(b []byte) (int, error) { return s.send(b) }

// Redial closes the Stream's connection and opens another one with the same options. Interrupt ends the wait for it.
func (s *Stream) Redial(to netip.AddrPort, timeout time.Duration) error { return s.redial(to, timeout) }
