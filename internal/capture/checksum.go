package capture

import (
	"encoding/binary"
	"math/bits"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// maxFrame is the longest frame that a line carries. Longer packets were merged in a host.
const maxFrame = 9216

// verify marks a segment with payload that was captured whole and has a wrong checksum.
func verify(segment []byte, length int, s *flow.Segment) {
	whole := len(segment) >= length && length <= maxFrame && s.Options&flow.IsFragment == 0
	if s.Payload > 0 && whole && isDamaged(segment[:length], s) {
		s.Options |= flow.BadChecksum
	}
}

// isDamaged reports whether the checksum of a whole TCP segment with the addresses of s is wrong (RFC 9293, 3.1). The
// sum of only the pseudo-header is not: the sending host leaves the rest to its device.
func isDamaged(segment []byte, s *flow.Segment) bool {
	const protoTCP = 6
	pseudo := sum(0, s.Src.Hi)
	for _, word := range []uint64{s.Src.Lo, s.Dst.Hi, s.Dst.Lo, uint64(len(segment)) + protoTCP} {
		pseudo = sum(pseudo, word)
	}
	if binary.BigEndian.Uint16(segment[16:]) == fold(pseudo) {
		return false
	}
	// The sum of swapped bytes is the swapped sum (RFC 1071, 2B).
	return fold(sum(pseudo, bits.ReverseBytes64(sumSwapped(segment)))) != 0xffff
}

// sumSwapped adds up words of 64 bits, the least significant byte first; the last one is padded with 0.
func sumSwapped(data []byte) uint64 {
	le := binary.LittleEndian
	var total, carry uint64
	for ; len(data) >= 64; data = data[64:] {
		block := (*[64]byte)(data)
		total, carry = bits.Add64(total, le.Uint64(block[:]), 0)
		total, carry = bits.Add64(total, le.Uint64(block[8:]), carry)
		total, carry = bits.Add64(total, le.Uint64(block[16:]), carry)
		total, carry = bits.Add64(total, le.Uint64(block[24:]), carry)
		total, carry = bits.Add64(total, le.Uint64(block[32:]), carry)
		total, carry = bits.Add64(total, le.Uint64(block[40:]), carry)
		total, carry = bits.Add64(total, le.Uint64(block[48:]), carry)
		total, carry = bits.Add64(total, le.Uint64(block[56:]), carry)
		total = sum(total, carry)
	}
	for ; len(data) >= 8; data = data[8:] {
		total = sum(total, le.Uint64(data))
	}
	var last [8]byte
	copy(last[:], data)
	return sum(total, le.Uint64(last[:]))
}

// sum adds in ones' complement. The upper half of an IPv4 address in its mapped form is 0xffff, which changes nothing.
func sum(a, b uint64) uint64 {
	total, carry := bits.Add64(a, b, 0)
	return total + carry
}

// fold returns a sum of 64 bits as one of 16 bits (RFC 1071).
func fold(total uint64) uint16 {
	for total > 0xffff {
		total = total>>16 + total&0xffff
	}
	return uint16(total)
}
