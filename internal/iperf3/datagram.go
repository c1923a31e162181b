package iperf3

import (
	"encoding/binary"
	"time"
)

// The four bytes with which a UDP stream introduces itself and is answered. The order
// of the older ones depends on the sender's machine; 3.12 made them ASCII.
var (
	udpHello       = [4]byte{'9', '8', '7', '6'}
	udpAnswer      = [4]byte{'6', '7', '8', '9'}
	udpHelloBefore = [][4]byte{{0x15, 0xCD, 0x5B, 0x07}, {0x07, 0x5B, 0xCD, 0x15}}
	udpAnswers     = [][4]byte{udpAnswer, {0xB1, 0x68, 0xDE, 0x3A}, {0x3A, 0xDE, 0x68, 0xB1}}
)

// AnswerHello returns what a server sends back to a stream's first datagram, in the
// dialect it was addressed in. ok is false for anything that is no greeting.
func AnswerHello(datagram []byte) (answer [4]byte, ok bool) {
	if len(datagram) != 4 {
		return answer, false
	}
	switch hello := [4]byte(datagram); hello {
	case udpHello:
		return udpAnswer, true
	case udpHelloBefore[0]:
		return udpAnswers[1], true
	case udpHelloBefore[1]:
		return udpAnswers[2], true
	}
	return answer, false
}

// IsAnswer says whether a datagram is a server's answer, in any dialect.
func IsAnswer(datagram []byte) bool {
	if len(datagram) != 4 {
		return false
	}
	for _, known := range udpAnswers {
		if [4]byte(datagram) == known {
			return true
		}
	}
	return false
}

// Header opens every datagram of a UDP stream.
type Header struct {
	Sent    time.Duration // the sender's clock, since an epoch of its own
	Counter uint64        // from 1
}

// headerSize is 12 bytes, or 16 where counters have 64 bits.
func headerSize(wide bool) int {
	if wide {
		return 16
	}
	return 12
}

// Put writes the header to the start of b, which holds at least its size.
func (h Header) Put(b []byte, wide bool) {
	binary.BigEndian.PutUint32(b, uint32(h.Sent/time.Second))
	binary.BigEndian.PutUint32(b[4:], uint32(h.Sent%time.Second/time.Microsecond))
	if wide {
		binary.BigEndian.PutUint64(b[8:], h.Counter)
	} else {
		binary.BigEndian.PutUint32(b[8:], uint32(h.Counter))
	}
}

// ReadHeader reads a datagram's header; ok is false where it is too short.
func ReadHeader(b []byte, wide bool) (h Header, ok bool) {
	if len(b) < headerSize(wide) {
		return h, false
	}
	h.Sent = time.Duration(binary.BigEndian.Uint32(b))*time.Second +
		time.Duration(binary.BigEndian.Uint32(b[4:]))*time.Microsecond
	if wide {
		h.Counter = binary.BigEndian.Uint64(b[8:])
	} else {
		h.Counter = uint64(binary.BigEndian.Uint32(b[8:]))
	}
	return h, true
}

// Arrivals counts a UDP stream as its receiver sees it, by iperf3's rules: a gap in the
// counters is so many lost, a late datagram gives one back.
type Arrivals struct {
	Datagrams  int64
	Bytes      int64
	Highest    uint64 // the largest counter seen: datagrams that were sent, as far as is known
	Lost       int64
	Reordered  int64
	Duplicates int64
	Jitter     time.Duration // RFC 1889 A.8: the mean deviation, smoothed by 1/16

	// LeastDelay and the delays are receiver's clock less sender's: only their
	// differences mean anything.
	LeastDelay time.Duration
	lastDelay  time.Duration
	seen       [seenWords]uint64 // a ring of bits below Highest, to tell late from twice
}

const seenWords = 64 // 4096 datagrams back

// Add counts one datagram of size bytes that arrived at the receiver's time now. It
// answers the datagram's delay above the least one so far.
func (a *Arrivals) Add(h Header, size int, now time.Duration) time.Duration {
	a.Datagrams++
	a.Bytes += int64(size)
	delay := now - h.Sent
	if a.Datagrams == 1 {
		a.LeastDelay, a.lastDelay = delay, delay
	}
	a.LeastDelay = min(a.LeastDelay, delay)
	a.Jitter += ((delay - a.lastDelay).Abs() - a.Jitter) / 16
	a.lastDelay = delay

	const window = seenWords * 64
	switch {
	case h.Counter > a.Highest:
		gap := h.Counter - a.Highest
		if gap >= window {
			a.seen = [seenWords]uint64{}
		} else {
			for c := a.Highest + 1; c < h.Counter; c++ {
				a.seen[c/64%seenWords] &^= 1 << (c % 64)
			}
		}
		a.Lost += int64(min(gap-1, 1<<62))
		a.Highest = h.Counter
	case a.Highest-h.Counter < window && a.seen[h.Counter/64%seenWords]&(1<<(h.Counter%64)) != 0:
		a.Duplicates++
	default:
		a.Reordered++
		a.Lost = max(0, a.Lost-1)
	}
	a.seen[h.Counter/64%seenWords] |= 1 << (h.Counter % 64)
	return delay - a.LeastDelay
}
