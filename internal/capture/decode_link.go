package capture

import "encoding/binary"

// llc reads an IEEE 802.2 header with SNAP (RFC 1042), or one that says IP itself.
func (l *headers) llc() Kind {
	d := l.rest
	switch {
	case len(d) >= 8 && d[0] == 0xaa && d[1] == 0xaa && d[2] == 3:
		return l.typed(6, 8)
	case len(d) >= 3 && d[0] == 6 && d[1] == 6 && d[2] == 3:
		return l.inside(3, (*headers).ip)
	}
	return Other
}

// fddi reads ANSI X3.139's frame control and two addresses.
func (l *headers) fddi() Kind {
	const async, frame = 0x50, 13
	if len(l.rest) < frame || l.rest[0]&0xf0 != async {
		return Other
	}
	return l.inside(frame, (*headers).llc)
}

// nflog reads Linux's netfilter log: four bytes, then attributes, each of its length and its
// type in the capturing host's order. The packet itself is type 9.
func (l *headers) nflog() Kind {
	const header, payload = 4, 9
	d := l.rest
	at := header
	for len(d) >= at+4 {
		order := binary.ByteOrder(binary.LittleEndian)
		if size := order.Uint16(d[at:]); size < 4 || int(size) > len(d)-at && binary.BigEndian.Uint16(d[at:]) < size {
			order = binary.BigEndian
		}
		size := int(order.Uint16(d[at:]))
		kind := order.Uint16(d[at+2:]) & 0x7fff
		if size < 4 {
			return Malformed
		}
		if kind == payload {
			return l.inside(at+4, (*headers).ip)
		}
		at += (size + 3) &^ 3
	}
	return Other
}

// wireless reads IEEE 802.11 data frames that are not encrypted.
func (l *headers) wireless() Kind {
	d := l.rest
	if len(d) < 24 {
		return Other
	}
	const data, null, qos, order, protected, bothDS = 2, 4, 8, 0x80, 0x40, 3
	if d[0]&3 != 0 || d[0]>>2&3 != data || d[0]>>4&null != 0 || d[1]&protected != 0 {
		return Other
	}
	size := 24
	if d[1]&bothDS == bothDS {
		size += 6
	}
	if d[0]>>4&qos != 0 {
		if len(d) >= size+2 && d[size]&0x80 != 0 {
			return Other // several packets in one frame
		}
		size += 2
		if d[1]&order != 0 {
			size += 4
		}
	}
	return l.inside(size, (*headers).llc)
}

// radiotap passes the header of that name, by the length in it, little endian.
func (l *headers) radiotap() Kind {
	if len(l.rest) < 4 || l.rest[0] != 0 {
		return Other
	}
	return l.sized(int(binary.LittleEndian.Uint16(l.rest[2:])), 8, (*headers).wireless)
}

// sized goes on after a header that says itself how long it is.
func (l *headers) sized(size, least int, next func(*headers) Kind) Kind {
	if size < least || size > len(l.rest) {
		return Other
	}
	return l.inside(size, next)
}

// perPacket reads the Per-Packet Information header, which names the link type of what
// follows.
func (l *headers) perPacket() Kind {
	if len(l.rest) < 8 || l.rest[0] != 0 {
		return Other
	}
	link := LinkType(binary.LittleEndian.Uint32(l.rest[4:]))
	if link == linkPPI {
		return Malformed
	}
	return l.sized(int(binary.LittleEndian.Uint16(l.rest[2:])), 8, func(l *headers) Kind { return l.linkLayer(link) })
}

// juniper reads the header that Juniper's routers put before what their ports carry.
func (l *headers) juniper(next func(*headers) Kind) Kind {
	const magic, noLink, extended = "MGC", 2, 0x80
	d := l.rest
	if len(d) < 6 || string(d[:3]) != magic {
		return Other
	}
	size := 4
	if d[3]&extended != 0 {
		size += 2 + int(binary.BigEndian.Uint16(d[4:]))
	}
	if d[3]&noLink != 0 { // four bytes that name the protocol, which is IP
		return l.sized(size+4, 4, (*headers).ip)
	}
	return l.sized(size, 4, next)
}

// erf reads one of Endace's records within another format.
func (l *headers) erf() Kind {
	if len(l.rest) < erfHeader {
		return Other
	}
	p := Packet{}
	if !erfPacket(l.rest, &p) {
		return UnknownLink
	}
	before := len(l.rest) - len(p.Data)
	return l.inside(before, func(l *headers) Kind { return l.linkLayer(p.Link) })
}

// gtp reads GTP-U (3GPP TS 29.281), in which mobile networks carry packets.
func (l *headers) gtp() Kind {
	const version, gtp, optional, next, packet = 0xe0, 0x10, 7, 4, 0xff
	d := l.rest
	if len(d) < 8 || d[0]&version != 1<<5 || d[0]&gtp == 0 || d[1] != packet {
		return Other
	}
	size := 8
	if d[0]&optional == 0 {
		return l.inside(size, (*headers).ip)
	}
	size += 4
	if len(d) < size {
		return Other
	}
	// extension headers, in words, with the next one's type at their end
	for more := d[0]&next != 0 && d[size-1] != 0; more; {
		if len(d) <= size || d[size] == 0 {
			return Other
		}
		size += 4 * int(d[size])
		if size > len(d) {
			return Other
		}
		more = d[size-1] != 0
	}
	return l.inside(size, (*headers).ip)
}

// erspan3 reads ERSPAN's third version: twelve bytes, and eight more that the last says.
func (l *headers) erspan3() Kind {
	if len(l.rest) < 12 {
		return Other
	}
	size := 12
	if l.rest[11]&1 != 0 {
		size += 8
	}
	return l.inside(size, (*headers).ethernet)
}
