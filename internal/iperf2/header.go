package iperf2

import (
	"encoding/binary"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/datagram"
)

// Flags of a client's header, the first 32 bits of a TCP connection. Clients without a header send 0, or payload of
// ASCII digits, which has neither of the first two bits.
const (
	flagVersion1   = 1 << 31 // -d or -r: the server shall connect to the client
	flagExtended   = 1 << 30 // a second part follows
	flagSequence64 = 1 << 27 // UDP: sequence numbers of 64 bits
	flagBounceback = 1 << 23 // --bounceback: the server shall return each request
	flagLength     = 1 << 16 // the header has 2.0.14's layout
	flagReverse    = 0x0400  // -R, in the second part
)

const (
	flagsSize    = 4
	firstSize    = 24 // flags, threads, port, buffer length, window or rate, amount
	extendedSize = 36 // the first part, type, length, flags of the second part
)

// header has a TCP client's requests.
type header struct {
	reverse    bool          // the server sends
	connect    bool          // the server shall connect to the client
	bounceback bool          // the server shall return each request
	time       time.Duration // of a test, 0: until bytes have been moved
	bytes      int64
}

// headerSize returns the number of header bytes to parse if the header begins with flags.
func headerSize(flags [flagsSize]byte) int {
	switch f := binary.BigEndian.Uint32(flags[:]); {
	case f&flagExtended != 0:
		return extendedSize
	case f&flagVersion1 != 0:
		return firstSize
	}
	return flagsSize
}

// parseHeader reads a header of headerSize bytes.
func parseHeader(b []byte) (h header) {
	flags := binary.BigEndian.Uint32(b)
	h.bounceback = flags&(flagVersion1|flagExtended) == 0 && flags&^0xff == flagBounceback
	if len(b) < firstSize {
		return h
	}
	h.connect = flags&flagVersion1 != 0
	if amount := int32(binary.BigEndian.Uint32(b[20:])); amount < 0 {
		h.time = time.Duration(-int64(amount)) * 10 * time.Millisecond
	} else {
		h.bytes = int64(amount)
	}
	if len(b) >= extendedSize && flags&flagLength != 0 {
		h.reverse = binary.BigEndian.Uint16(b[32:])&flagReverse != 0
	}
	return h
}

// packet is the header of a client's datagram.
type packet struct {
	datagram.Header
	last bool // the client asks for the report
	wide bool // sequence numbers of 64 bits
}

// parsePacket reads a datagram's header: a sequence number, negative in the last datagrams, and the time at which it
// was sent. A flow's first datagram shows whether it is wide. ok is false if b has no such header.
func parsePacket(b []byte, wide bool) (p packet, ok bool) {
	const narrowSize, wideSize = 12, 16
	if len(b) < narrowSize || wide && len(b) < wideSize {
		return p, false
	}
	sequence := int64(int32(binary.BigEndian.Uint32(b)))
	if wide {
		sequence = int64(binary.BigEndian.Uint32(b)) | int64(int32(binary.BigEndian.Uint32(b[12:])))<<32
	}
	p.wide = wide
	p.Sent = time.Duration(binary.BigEndian.Uint32(b[4:]))*time.Second +
		time.Duration(binary.BigEndian.Uint32(b[8:]))*time.Microsecond
	p.last = sequence < 0
	if p.last {
		sequence = -sequence
	}
	p.Sequence = uint64(sequence)
	return p, sequence >= 0 // the least number has no negative
}

// isWide reports whether a flow's first datagram announces sequence numbers of 64 bits.
func isWide(b []byte) bool {
	return len(b) >= 20 && binary.BigEndian.Uint32(b[16:])&(flagExtended|flagSequence64) == flagExtended|flagSequence64
}

// reportSize is the size of the report after a flow's last datagram. A client that sends less gets none, so that no
// report is larger than its request: source addresses may be forged.
const reportSize = 16 + 40

// putReport returns the report about a flow as iperf 2 clients read it. The datagram's header before it is zero.
func putReport(wide bool, a *datagram.Arrivals, span time.Duration) []byte {
	b := make([]byte, reportSize)
	at := b[12:]
	flags := uint32(flagVersion1)
	if wide {
		at = b[16:]
		flags |= flagSequence64
	}
	for i, v := range []uint32{flags, uint32(a.Bytes >> 32), uint32(a.Bytes), uint32(span / time.Second),
		uint32(span % time.Second / time.Microsecond), uint32(min(a.Lost, 1<<31-1)), uint32(min(a.Reordered, 1<<31-1)),
		uint32(min(a.Highest, 1<<31-1)), uint32(a.Jitter / time.Second), uint32(a.Jitter % time.Second / time.Microsecond)} {
		binary.BigEndian.PutUint32(at[4*i:], v)
	}
	return b
}
