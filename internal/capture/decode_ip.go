package capture

import (
	"encoding/binary"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// IP protocols.
const (
	protoHopByHop = 0
	protoICMP     = 1
	protoIPIP     = 4
	protoTCP      = 6
	protoUDP      = 17
	protoIPv6     = 41
	protoRouting  = 43
	protoFragment = 44
	protoGRE      = 47
	protoAH       = 51
	protoICMPv6   = 58
	protoOptions  = 60
	protoEthernet = 143
)

// UDP ports of tunnels: VXLAN (and Linux's first choice for it), Geneve.
const (
	portVXLAN      = 4789
	portVXLANLinux = 8472
	portGeneve     = 6081
	portGTP        = 2152
)

func (l *headers) ip() Kind {
	if len(l.rest) == 0 {
		return Other
	}
	switch l.rest[0] >> 4 {
	case 4:
		return l.ipv4()
	case 6:
		return l.ipv6()
	}
	return Other
}

func (l *headers) ipv4() Kind {
	d := l.rest
	if len(d) < 20 || d[0]>>4 != 4 {
		return Other
	}
	header := int(d[0]&15) * 4
	total := int(binary.BigEndian.Uint16(d[2:]))
	if total == 0 {
		total = l.length // BIG TCP, or a segment that the device is still to cut
	}
	if header < 20 || total < header {
		return Malformed
	}
	fragment := binary.BigEndian.Uint16(d[6:])
	if fragment&0x1fff != 0 {
		return laterPiece(d[9])
	}
	s := l.seg
	s.IPID = binary.BigEndian.Uint16(d[4:])
	s.ECN = d[1] & 3
	s.TTL = d[8]
	s.Options = 0
	if fragment&0x2000 != 0 {
		s.Options = flow.IsFragment
	}
	s.Src = flow.Endpoint4(binary.BigEndian.Uint32(d[12:]), 0)
	s.Dst = flow.Endpoint4(binary.BigEndian.Uint32(d[16:]), 0)
	protocol := d[9]
	if len(d) < header {
		return cutIf(protocol)
	}
	l.rest = d[header:min(len(d), total)]
	l.length = total - header
	if protocol == protoTCP {
		return l.tcp()
	}
	return l.transport(protocol)
}

func cutIf(protocol byte) Kind {
	if protocol == protoTCP {
		return Cut
	}
	return Other
}

func laterPiece(protocol byte) Kind {
	if protocol == protoTCP {
		return Fragment
	}
	return Other
}

func (l *headers) ipv6() Kind {
	d := l.rest
	if len(d) < 40 || d[0]>>4 != 6 {
		return Other
	}
	s := l.seg
	s.IPID = 0
	s.Options = 0
	s.ECN = d[1] >> 4 & 3
	s.TTL = d[7]
	s.Src = flow.Endpoint{Hi: binary.BigEndian.Uint64(d[8:]), Lo: binary.BigEndian.Uint64(d[16:])}
	s.Dst = flow.Endpoint{Hi: binary.BigEndian.Uint64(d[24:]), Lo: binary.BigEndian.Uint64(d[32:])}
	payload := int(binary.BigEndian.Uint16(d[4:]))
	if payload == 0 {
		payload = l.length - 40 // a jumbogram, unless its option says otherwise
	}
	protocol := d[6]
	l.rest = d[40:min(len(d), 40+max(payload, 0))]
	l.length = payload
	for {
		if protocol == protoTCP {
			return l.tcp()
		}
		var size int
		switch protocol {
		case protoHopByHop, protoRouting, protoOptions, protoFragment, protoAH:
			if len(l.rest) < 8 {
				return Other
			}
			size = 8 + int(l.rest[1])*8
			switch protocol {
			case protoFragment:
				size = 8
				offset := binary.BigEndian.Uint16(l.rest[2:])
				if offset&0xfff8 != 0 {
					return laterPiece(l.rest[0])
				}
				if offset&1 != 0 {
					s.Options |= flow.IsFragment
				}
			case protoAH:
				size = 8 + int(l.rest[1])*4
			case protoHopByHop:
				if n := jumbo(l.rest[:min(len(l.rest), size)]); n > 0 {
					l.length = n
				}
			}
		default:
			return l.transport(protocol)
		}
		l.depth++
		if l.depth > maxLayers {
			return Malformed
		}
		if size > len(l.rest) {
			return Other
		}
		protocol = l.rest[0]
		l.rest = l.rest[size:]
		l.length = l.length - size
	}
}

// jumbo reads the jumbo payload option (RFC 2675) of a hop-by-hop header; 0 without one.
func jumbo(header []byte) int {
	for o := header[2:]; len(o) >= 2; {
		if o[0] == 0 { // one byte of padding
			o = o[1:]
			continue
		}
		if o[0] == 0xc2 && o[1] == 4 && len(o) >= 6 {
			return int(binary.BigEndian.Uint32(o[2:]))
		}
		o = o[min(len(o), 2+int(o[1])):]
	}
	return 0
}

func (l *headers) transport(protocol byte) Kind {
	switch protocol {
	case protoUDP:
		return l.udp()
	case protoIPIP, protoIPv6:
		return l.inside(0, (*headers).ip)
	case protoGRE:
		return l.gre()
	case protoEthernet:
		return l.inside(0, (*headers).ethernet)
	case protoICMP:
		return l.tooBig(3, 4, 8)
	case protoICMPv6:
		return l.tooBig(2, 0, 8)
	}
	return Other
}

// gre reads RFC 2784 with RFC 2890's key and sequence number, and ERSPAN types I and II.
func (l *headers) gre() Kind {
	d := l.rest
	if len(d) < 4 || d[1]&7 != 0 {
		return Other
	}
	flags := d[0]
	kind := binary.BigEndian.Uint16(d[2:])
	size := 4
	for _, bit := range []byte{0x80, 0x20, 0x10} {
		if flags&bit != 0 {
			size += 4
		}
	}
	if kind == typeERSPAN {
		if flags&0x10 != 0 {
			size += 8
		}
		return l.inside(size, (*headers).ethernet)
	}
	if kind == typeERSPAN3 {
		return l.inside(size, (*headers).erspan3)
	}
	return l.inside(size, func(l *headers) Kind { return l.etherType(kind) })
}

func (l *headers) udp() Kind {
	d := l.rest
	if len(d) < 16 {
		return Other
	}
	switch binary.BigEndian.Uint16(d[2:]) {
	case portVXLAN, portVXLANLinux:
		if d[8]&8 != 0 {
			return l.inside(16, (*headers).ethernet)
		}
	case portGTP:
		return l.inside(8, (*headers).gtp)
	case portGeneve:
		kind := binary.BigEndian.Uint16(d[10:])
		if d[8]>>6 == 0 {
			return l.inside(16+int(d[8]&0x3f)*4, func(l *headers) Kind { return l.etherType(kind) })
		}
	}
	return Other
}

// tooBig reads an ICMP "fragmentation needed" or "packet too big" message. The message must contain the head of the
// dropped packet with at least 8 bytes of its TCP header. The resulting segment has the addresses and ports of the
// dropped packet, and as its MSS the MTU that the router reported, or 0.
func (l *headers) tooBig(kind, code byte, header int) Kind {
	d := l.rest
	if len(d) < header+1 || d[0] != kind || d[1] != code {
		return Other
	}
	mtu := binary.BigEndian.Uint32(d[4:])
	inner := headers{rest: d[header:], length: len(d) - header, seg: l.seg, depth: maxLayers - 1}
	if k := inner.ip(); k != TCP && k != Cut {
		return Other
	}
	at := 20
	if d[header]>>4 == 6 {
		at = 40
	} else {
		at = int(d[header]&15) * 4
	}
	tcp := d[header:]
	if len(tcp) < at+8 {
		return Other
	}
	tcp = tcp[at:]
	s := l.seg
	s.Src.Port = binary.BigEndian.Uint16(tcp)
	s.Dst.Port = binary.BigEndian.Uint16(tcp[2:])
	s.Seq = binary.BigEndian.Uint32(tcp[4:])
	s.MSS = uint16(mtu)
	s.Options = flow.IsTooBig
	return TooBig
}
