package socket

import (
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

// RepairsOf reads the counters of a connection.
func RepairsOf(conn syscall.Conn) Repairs { return repairsOf(conn) }
