package lost

import (
	"encoding/binary"
	"net/netip"
)

// HeaderBytes is how much of a packet ParsePacket needs: the longest IPv4 header and TCP's fields
// up to the flags.
const HeaderBytes = 60 + 16

const (
	protocolTCP    = 6
	protocolUDP    = 17
	udpHeader      = 8
	ipv6Header     = 40
	flagFIN        = 0x01
	flagSYN        = 0x02
	fragmentOffset = 0x1fff // only the first fragment has the header of TCP
	minHeaderBytes = 20
)

// ParsePacket returns the flow and the range of sequence numbers of a packet from its first bytes,
// the IP header first. length is the packet's length in bytes from there, with padding. ok is false
// for a packet that is neither TCP nor UDP, is damaged or has extension headers of IPv6.
func ParsePacket(b []byte, length uint32) (f Flow, seq, bytes uint32, ok bool) {
	if len(b) < minHeaderBytes {
		return f, 0, 0, false
	}
	var source, destination netip.Addr
	var header, total int
	var protocol byte
	switch {
	case b[0]>>4 == 4 && binary.BigEndian.Uint16(b[6:])&fragmentOffset == 0:
		protocol = b[9]
		header = int(b[0]&15) * 4
		total = int(binary.BigEndian.Uint16(b[2:]))
		source = netip.AddrFrom4([4]byte(b[12:16]))
		destination = netip.AddrFrom4([4]byte(b[16:20]))
	case b[0]>>4 == 6 && len(b) >= ipv6Header:
		protocol = b[6]
		header = ipv6Header
		if payload := int(binary.BigEndian.Uint16(b[4:])); payload > 0 {
			total = ipv6Header + payload
		}
		source = netip.AddrFrom16([16]byte(b[8:24])).Unmap()
		destination = netip.AddrFrom16([16]byte(b[24:40])).Unmap()
	}
	f.UDP = protocol == protocolUDP
	if header < minHeaderBytes || len(b) < header+14 || protocol != protocolTCP && !f.UDP {
		return Flow{}, 0, 0, false
	}
	tcp := b[header:] // or UDP: the ports are in the same place
	// A total of 0 is a jumbogram (BIG TCP); Ethernet pads short packets.
	if total > 0 && uint32(total) < length {
		length = uint32(total)
	}
	f.Source = netip.AddrPortFrom(source, binary.BigEndian.Uint16(tcp))
	f.Destination = netip.AddrPortFrom(destination, binary.BigEndian.Uint16(tcp[2:]))
	if f.UDP {
		headers := uint32(header) + udpHeader
		return f, 0, length - min(headers, length), length > headers && length <= 1<<20
	}
	headers := uint32(header) + uint32(tcp[12]>>4)*4
	if uint32(tcp[12]>>4)*4 < minHeaderBytes || length < headers || length > 1<<20 {
		return f, 0, 0, false
	}
	bytes = length - headers
	if tcp[13]&flagSYN != 0 {
		bytes++
	}
	if tcp[13]&flagFIN != 0 {
		bytes++
	}
	return f, binary.BigEndian.Uint32(tcp[4:]), bytes, true
}
