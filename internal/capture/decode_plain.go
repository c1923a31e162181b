package capture

import (
	"encoding/binary"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// plainLink is a link header of fixed length: how long it is, and where the EtherType is in it.
type plainLink struct{ size, etherType int }

// plain is the link header that nearly all captures of a type have; a size of 0 says that
// there is no such.
func plain(link LinkType) plainLink {
	switch link {
	case linkEthernet:
		return plainLink{14, 12}
	case linkLinuxSLL2:
		return plainLink{20, 0}
	case linkLinuxSLL:
		return plainLink{16, 14}
	}
	return plainLink{}
}

// decodePlain does in one step all that nearly every packet needs: IPv4 without options or fragments in one link
// header, TCP without options or with only timestamps. It fills all of s but when and where. It returns false for
// everything else, which decodeLayers then reads.
func decodePlain(frame []byte, link plainLink, s *flow.Segment) bool {
	const headers, timestamps = 20 + 20, 12
	if link.size == 0 || len(frame) < link.size+headers {
		return false
	}
	be := binary.BigEndian
	packet := frame[link.size:]
	d := (*[headers]byte)(packet)
	// Version and header length, more fragments and offset, in one comparison.
	const shape, whole4 = 0xff<<56 | 0x3fff, 0x45 << 56
	if be.Uint16(frame[link.etherType:]) != typeIPv4 || be.Uint64(d[:8])&shape != whole4 || d[9] != protoTCP {
		return false
	}
	header := int(d[32]>>4) * 4
	payload := int(be.Uint16(d[2:4])) - 20 - header
	if payload < 0 {
		return false
	}
	switch {
	case header == 20+timestamps && len(packet) >= headers+timestamps:
		d := (*[headers + timestamps]byte)(packet)
		if be.Uint32(d[40:44]) != twoNopsTimestamps {
			return false
		}
		s.Options = flow.HasTimestamps
		s.TSVal = be.Uint32(d[44:48])
		s.TSEcr = be.Uint32(d[48:])
	case header == 20:
		s.Options = 0
		s.TSVal = 0
		s.TSEcr = 0
	default:
		return false
	}
	s.ECN = d[1] & 3
	s.IPID = be.Uint16(d[4:6])
	s.TTL = d[8]
	s.Src = flow.Endpoint4(be.Uint32(d[12:16]), be.Uint16(d[20:22]))
	s.Dst = flow.Endpoint4(be.Uint32(d[16:20]), be.Uint16(d[22:24]))
	s.Seq = be.Uint32(d[24:28])
	s.Ack = be.Uint32(d[28:32])
	s.Flags = flow.Flags(be.Uint16(d[32:34])) & flow.AllFlags
	s.Window = be.Uint16(d[34:36])
	s.Payload = uint32(payload)
	s.SACKs = 0
	verify(packet[20:], header+payload, s)
	return true
}
