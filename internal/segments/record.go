package segments

import (
	"encoding/binary"

	"github.com/fullpipe-net/fullpipe/internal/turns"
)

// The record of a segment.
const (
	recTime     = 0   // CLOCK_MONOTONIC in ns
	recSocket   = 8   // the kernel's address of it: the key until it is closed
	recCookie   = 112 // of an arrival; else 0
	recLength   = 16  // bytes from the TCP header on
	recSYN      = 20  // of an arrival: the excess of bytes_acked over the payload, 1 where this end sent the SYN
	recLeaves   = 24  // 1: this host sends it
	recScales   = 25  // shifts of the peer's window (lower half) and of this end's
	recState    = 26  // of congestion control
	recProtocol = 28  // ethertype, network byte order
	recBefore   = 32  // the bytes before the TCP header: the end of the IP header
	recHeader   = recBefore + beforeBytes
	recMinRTT   = 120 // of an arrival: the kernel's least round trip in µs
	recMSS      = 124 // of an arrival: the payload of a full segment of this end
	recordSize  = 128

	beforeBytes = 20
	headerBytes = 60
	synUnknown  = -1
	noMinRTT    = 1<<32 - 1
)

// segment is a decoded record.
type segment struct {
	at     int64
	socket uint64 // the kernel's address
	cookie uint64 // 0: not known
	syn    int32
	minRTT int64 // 0: not known
	mss    int64 // payload of a full segment; 0: not known
	leaves bool
	turns.Packet
}

// TCP options, and the ethertype of IPv4.
const (
	optionEnd        = 0
	optionNop        = 1
	optionMSS        = 2
	optionSACK       = 5
	optionTimestamps = 8
	typeIPv4         = 0x0800
	plainIPv4        = 0x45 // version 4, no options
)

// decode reads a record. It leaves out Packet.At and Packet.FromClient.
func decode(b []byte, s *segment) bool {
	if len(b) < recordSize {
		return false
	}
	*s = segment{at: int64(binary.NativeEndian.Uint64(b[recTime:])), socket: binary.NativeEndian.Uint64(b[recSocket:]),
		cookie: binary.NativeEndian.Uint64(b[recCookie:]),
		syn:    int32(binary.NativeEndian.Uint32(b[recSYN:])), leaves: b[recLeaves] == 1,
		mss: int64(binary.NativeEndian.Uint32(b[recMSS:]))}
	if rtt := binary.NativeEndian.Uint32(b[recMinRTT:]); rtt != noMinRTT {
		s.minRTT = int64(rtt) * 1000
	}
	tcp := b[recHeader : recHeader+headerBytes]
	header := int(tcp[12]>>4) * 4
	length := int(binary.NativeEndian.Uint32(b[recLength:]))
	if header < 20 || length < header {
		return false
	}
	s.Seq = binary.BigEndian.Uint32(tcp[4:])
	s.Ack = binary.BigEndian.Uint32(tcp[8:])
	s.Flags = turns.Flags(tcp[13]) & turns.TCPFlags
	s.Payload = uint32(length - header)
	s.Window = int64(binary.BigEndian.Uint16(tcp[14:]))
	shift := b[recScales] & 15
	if s.leaves {
		shift = b[recScales] >> 4
		s.Repair = repairs[b[recState]&31]
	}
	if s.Flags&turns.SYN == 0 {
		s.Window <<= shift
	}
	if !s.leaves && binary.BigEndian.Uint16(b[recProtocol:]) == typeIPv4 && b[recBefore] == plainIPv4 {
		s.Flags |= turns.IPv4
		s.IPID = binary.BigEndian.Uint16(b[recBefore+4:])
	}
	s.options(tcp[20:header])
	return true
}

// repairs has the cause of a retransmission by the state of congestion control (include/uapi/linux/tcp.h,
// tcp_ca_state): while nothing is known to be lost, only a tail-loss probe retransmits.
var repairs = [32]turns.Cause{0: turns.TailLossProbe, 1: turns.TailLossProbe, 2: turns.TailLossProbe,
	3: turns.FastRetransmit, 4: turns.Timeout}

func (s *segment) options(o []byte) {
	for len(o) > 0 && o[0] != optionEnd {
		if o[0] == optionNop {
			o = o[1:]
			continue
		}
		if len(o) < 2 || o[1] < 2 || int(o[1]) > len(o) {
			return
		}
		value := o[2:o[1]]
		switch {
		case o[0] == optionMSS && len(value) == 2:
			s.MSS = int64(binary.BigEndian.Uint16(value))
		case o[0] == optionTimestamps && len(value) == 8:
			s.Flags |= turns.Timestamps
			s.TSVal = binary.BigEndian.Uint32(value)
		case o[0] == optionSACK && len(value) >= 8:
			s.SACK = uint8(len(value) / 8)
			s.DSACK = int32(binary.BigEndian.Uint32(value[4:])-s.Ack) <= 0
		}
		o = o[o[1]:]
	}
}
