package link

import "encoding/binary"

// Frame describes the headers of an IP packet.
type Frame struct {
	Version   int // 4 or 6
	Transport int // offset of the transport header; 0 if not found
	Protocol  byte
	Multicast bool
}

const (
	protocolICMP   = 1
	protocolTCP    = 6
	protocolUDP    = 17
	protocolICMPv6 = 58
)

// Inspect parses the headers of an IP packet. It returns false for other data.
func Inspect(packet []byte) (Frame, bool) {
	if len(packet) < 20 {
		return Frame{}, false
	}
	switch packet[0] >> 4 {
	case 4:
		header := int(packet[0]&15) * 4
		if header < 20 || header > len(packet) {
			return Frame{}, false
		}
		f := Frame{Version: 4, Transport: header, Protocol: packet[9], Multicast: packet[16] >= 224}
		if binary.BigEndian.Uint16(packet[6:])&0x1fff != 0 {
			f.Transport = 0 // a later fragment
		}
		return f, true
	case 6:
		if len(packet) < 40 {
			return Frame{}, false
		}
		f := Frame{Version: 6, Transport: 40, Protocol: packet[6], Multicast: packet[24] == 0xff}
		f.skipExtensions(packet)
		return f, true
	}
	return Frame{}, false
}

// skipExtensions moves Transport past IPv6 extension headers (RFC 8200, section 4).
func (f *Frame) skipExtensions(packet []byte) {
	for f.Protocol == 0 || f.Protocol == 43 || f.Protocol == 60 || f.Protocol == 44 {
		at := f.Transport
		if at+8 > len(packet) {
			f.Transport = 0
			return
		}
		length := 8 * (int(packet[at+1]) + 1)
		if f.Protocol == 44 {
			length = 8
			if binary.BigEndian.Uint16(packet[at+2:])&0xfff8 != 0 {
				f.Transport = 0
				return
			}
		}
		f.Protocol = packet[at]
		f.Transport += length
	}
	if f.Transport > len(packet) {
		f.Transport = 0
	}
}

// FlowOf returns a hash of a packet's addresses, protocol and ports; 0 without ports.
func FlowOf(packet []byte, f Frame) uint64 {
	if f.Protocol != protocolTCP && f.Protocol != protocolUDP || f.Transport == 0 || f.Transport+4 > len(packet) {
		return 0
	}
	key := keyOf(packet, f)
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	hash := uint64(offset) ^ uint64(f.Protocol)
	for _, b := range key {
		hash = (hash * prime) ^ uint64(b)
	}
	return max(hash, 1)
}

// tcpHeader returns the length of the TCP header at an offset, or 0.
func tcpHeader(packet []byte, at int) int {
	if at == 0 || at+20 > len(packet) {
		return 0
	}
	n := int(packet[at+12]>>4) * 4
	if n < 20 || at+n > len(packet) {
		return 0
	}
	return n
}

// Split returns the length of a super-packet's headers and its Batch. It returns false if the packet is not TCP or
// mss is invalid.
func Split(packet []byte, transport, mss int) (header int, t Batch, ok bool) {
	tcp := tcpHeader(packet, transport)
	if tcp == 0 || mss <= 0 {
		return 0, Batch{}, false
	}
	header = transport + tcp
	payload := len(packet) - header
	if payload <= mss {
		return header, Batch{Segments: 1, Bytes: len(packet), Last: len(packet)}, true
	}
	n := (payload + mss - 1) / mss
	return header, Batch{Segments: n, Bytes: header + mss, Last: header + payload - (n-1)*mss}, true
}

// Cut takes count segments, from first on, out of a super-packet that Split accepted. It writes their headers to
// head, which has room for header bytes, and returns the payload without a copy. The TCP checksum is partial: the
// sum of the pseudo header.
func Cut(packet []byte, transport, header, mss, first, count int, head []byte) (payload []byte) {
	from := header + first*mss
	to := min(from+count*mss, len(packet))
	payload = packet[from:to]
	copy(head, packet[:header])
	length := header + len(payload)
	if packet[0]>>4 == 4 {
		binary.BigEndian.PutUint16(head[2:], uint16(length))
		id := binary.BigEndian.Uint16(head[4:])
		binary.BigEndian.PutUint16(head[4:], id+uint16(first))
		ipv4Checksum(head[:int(head[0]&15)*4])
	} else {
		binary.BigEndian.PutUint16(head[4:], uint16(length-40))
	}
	tcp := head[transport:header]
	sequence := binary.BigEndian.Uint32(tcp[4:])
	binary.BigEndian.PutUint32(tcp[4:], sequence+uint32(first*mss))
	const fin, psh, cwr = 1, 8, 128
	if to < len(packet) {
		tcp[13] &^= fin | psh
	}
	if first > 0 {
		tcp[13] &^= cwr
	}
	binary.BigEndian.PutUint16(tcp[16:], fold(pseudoSum(head, protocolTCP, length-transport)))
	return payload
}

// StripOptions overwrites options of a TCP handshake segment with no-operations, as some middleboxes do, and
// updates the checksum. A partial checksum covers the pseudo header only. Other packets are unchanged.
func StripOptions(packet []byte, f Frame, strip Options, partial bool) {
	if strip == 0 || f.Protocol != protocolTCP {
		return
	}
	n := tcpHeader(packet, f.Transport)
	if n == 0 || packet[f.Transport+13]&2 == 0 { // SYN
		return
	}
	tcp := packet[f.Transport : f.Transport+n]
	for at := 20; at < n; {
		kind := tcp[at]
		if kind == 0 {
			return
		}
		if kind == 1 {
			at++
			continue
		}
		if at+1 >= n || tcp[at+1] < 2 || at+int(tcp[at+1]) > n {
			return
		}
		end := at + int(tcp[at+1])
		if stripped(kind)&strip != 0 {
			for ; at < end; at++ {
				replace(tcp, at, 1, partial)
			}
		}
		at = end
	}
}

func stripped(kind byte) Options {
	switch kind {
	case 3:
		return WindowScale
	case 4, 5:
		return SACK
	case 8:
		return Timestamps
	}
	return 0
}

// replace changes one byte of a TCP header and updates its checksum (RFC 1624).
func replace(tcp []byte, at int, value byte, partial bool) {
	even := at &^ 1
	before := binary.BigEndian.Uint16(tcp[even:])
	tcp[at] = value
	if partial {
		return
	}
	after := binary.BigEndian.Uint16(tcp[even:])
	sum := uint32(^binary.BigEndian.Uint16(tcp[16:])) + uint32(^before) + uint32(after)
	binary.BigEndian.PutUint16(tcp[16:], ^fold(sum))
}

// TooBig writes the ICMP packet-too-big message for a packet (RFC 1191, RFC 4443) into buffer and returns its
// length, or 0 if none is due. It needs 576 bytes for IPv4 and 1280 for IPv6. Its source is the packet's
// destination.
func TooBig(packet []byte, f Frame, mtu int, buffer []byte) int {
	if f.Multicast || f.Transport == 0 || f.Transport >= len(packet) {
		return 0
	}
	if f.Version == 4 {
		if f.Protocol == protocolICMP && packet[f.Transport] != 8 {
			return 0
		}
		quoted := min(len(packet), 548)
		total := 28 + quoted
		b := buffer[:total]
		clear(b[:28])
		b[0] = 0x45
		b[8] = 64
		b[9] = protocolICMP
		binary.BigEndian.PutUint16(b[2:], uint16(total))
		copy(b[12:16], packet[16:20])
		copy(b[16:20], packet[12:16])
		ipv4Checksum(b[:20])
		b[20] = 3
		b[21] = 4
		binary.BigEndian.PutUint16(b[26:], uint16(mtu))
		copy(b[28:], packet[:quoted])
		binary.BigEndian.PutUint16(b[22:], ^fold(sum(b[20:])))
		return total
	}
	if f.Protocol == protocolICMPv6 && packet[f.Transport] < 128 {
		return 0
	}
	quoted := min(len(packet), 1232)
	total := 48 + quoted
	b := buffer[:total]
	clear(b[:48])
	b[0] = 0x60
	b[6] = protocolICMPv6
	b[7] = 64
	binary.BigEndian.PutUint16(b[4:], uint16(8+quoted))
	copy(b[8:24], packet[24:40])
	copy(b[24:40], packet[8:24])
	b[40] = 2
	binary.BigEndian.PutUint32(b[44:], uint32(mtu))
	copy(b[48:], packet[:quoted])
	binary.BigEndian.PutUint16(b[42:], ^fold(pseudoSum(b, protocolICMPv6, 8+quoted)+sum(b[40:])))
	return total
}

func ipv4Checksum(header []byte) {
	header[10] = 0
	header[11] = 0
	binary.BigEndian.PutUint16(header[10:], ^fold(sum(header)))
}

// pseudoSum returns the sum of the pseudo header of an IP packet.
func pseudoSum(b []byte, protocol byte, length int) uint32 {
	s := uint32(protocol) + uint32(length)
	if b[0]>>4 == 4 {
		return s + sum(b[12:20])
	}
	return s + sum(b[8:40])
}

func sum(b []byte) (s uint32) {
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	return s
}

func fold(s uint32) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// ECT reports whether a packet is ECN-capable (RFC 3168 section 5).
func ECT(packet []byte) bool {
	if packet[0]>>4 == 4 {
		return packet[1]&3 != 0
	}
	return packet[1]>>4&3 != 0
}

// MarkCE sets congestion experienced in an IP packet's header.
func MarkCE(packet []byte) {
	if packet[0]>>4 == 4 {
		packet[1] |= 3
		ipv4Checksum(packet[:int(packet[0]&15)*4])
		return
	}
	packet[1] |= 3 << 4
}
