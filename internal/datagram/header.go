package datagram

import (
	"encoding/binary"
	"time"
)

// Header begins each datagram of a flow, in iperf3's layout.
type Header struct {
	Sent     time.Duration // sender's clock, since an arbitrary epoch
	Sequence uint64        // from 1
}

// HeaderSize returns 12 bytes, or 16 with 64-bit sequence numbers.
func HeaderSize(wide bool) int {
	if wide {
		return 16
	}
	return 12
}

// Put writes the header to the start of b.
func (h Header) Put(b []byte, wide bool) {
	binary.BigEndian.PutUint32(b, uint32(h.Sent/time.Second))
	binary.BigEndian.PutUint32(b[4:], uint32(h.Sent%time.Second/time.Microsecond))
	if wide {
		binary.BigEndian.PutUint64(b[8:], h.Sequence)
	} else {
		binary.BigEndian.PutUint32(b[8:], uint32(h.Sequence))
	}
}

// ReadHeader parses a datagram's header. ok is false if it is too short.
func ReadHeader(b []byte, wide bool) (h Header, ok bool) {
	if len(b) < HeaderSize(wide) {
		return h, false
	}
	h.Sent = time.Duration(binary.BigEndian.Uint32(b))*time.Second +
		time.Duration(binary.BigEndian.Uint32(b[4:]))*time.Microsecond
	if wide {
		h.Sequence = binary.BigEndian.Uint64(b[8:])
	} else {
		h.Sequence = uint64(binary.BigEndian.Uint32(b[8:]))
	}
	return h, true
}
