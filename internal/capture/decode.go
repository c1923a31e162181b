package capture

import (
	"encoding/binary"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// Kind says what a packet was found to be.
type Kind uint8

const (
	Other       Kind = iota // not TCP, or nothing that is known here
	TCP                     // a TCP segment
	TooBig                  // an ICMP message that a TCP segment did not fit; its ends are the lost segment's
	Cut                     // TCP, but captured too short to be read
	Fragment                // a later piece of a TCP segment that IP took apart
	Malformed               // lengths that contradict each other
	UnknownLink             // a link type that is not known here
)

// maxLayers bounds how deep headers may nest.
const maxLayers = 24

// EtherTypes.
const (
	typeIPv4     = 0x0800
	typeIPv6     = 0x86dd
	typeVLAN     = 0x8100
	typeQinQ     = 0x88a8
	typeQinQOld  = 0x9100
	typeBridged  = 0x6558
	typeMPLS     = 0x8847
	typeMPLSMany = 0x8848
	typePPPoE    = 0x8864
	typeERSPAN   = 0x88be
	typeERSPAN3  = 0x22eb
	typePPP      = 0x880b
)

// headers walks a packet's headers inwards. rest is what was captured of the current
// layer and everything in it, length how long that was on the wire.
type headers struct {
	rest   []byte
	length int
	depth  int
	seg    *flow.Segment
}

// Decode finds the TCP segment in p. For TCP and TooBig it fills all of seg.
func Decode(p *Packet, seg *flow.Segment) Kind {
	seg.At = p.At
	seg.Interface = p.Interface
	if decodePlain(p.Data, plain(p.Link), seg) {
		return TCP
	}
	return decodeLayers(p, seg)
}

// decodeLayers reads whatever headers there are, one by one.
func decodeLayers(p *Packet, seg *flow.Segment) Kind {
	l := &p.headers
	*l = headers{rest: p.Data, length: p.Length, seg: seg}
	return l.linkLayer(p.Link)
}

func (l *headers) linkLayer(link LinkType) Kind {
	switch link {
	case linkEthernet:
		return l.ethernet()
	case linkRaw, linkRawBSD, linkRawOpen, linkIPv4, linkIPv6:
		return l.ip()
	case linkNull, linkLoop:
		// The family's number and byte order differ by system; the IP version does not.
		return l.inside(4, (*headers).ip)
	case linkLinuxSLL:
		return l.typed(14, 16)
	case linkLinuxSLL2:
		return l.typed(0, 20)
	case linkPPPoE:
		return l.pppoe()
	case linkPPP, linkPPPHDLC:
		return l.ppp()
	case linkCiscoHDLC:
		return l.typed(2, 4)
	case linkFDDI:
		return l.fddi()
	case linkATM:
		return l.llc()
	case linkSLIP:
		return l.inside(16, (*headers).ip)
	case linkMPLS:
		return l.mpls()
	case linkNFLOG:
		return l.nflog()
	case linkIPoIB: // two addresses of InfiniBand, then RFC 4391's header
		return l.typed(40, 44)
	case linkERF:
		return l.erf()
	case linkJuniper:
		return l.juniper((*headers).ethernet)
	case linkJunPPP:
		return l.juniper((*headers).ppp)
	case linkJunCHDLC:
		return l.juniper(func(l *headers) Kind { return l.typed(2, 4) })
	}
	return l.wirelessLayer(link)
}

// wirelessLayer reads IEEE 802.11 frames, with or without a header before them.
func (l *headers) wirelessLayer(link LinkType) Kind {
	switch link {
	case linkWireless:
		return l.wireless()
	case linkRadiotap:
		return l.radiotap()
	case linkPPI:
		return l.perPacket()
	case linkPrism:
		return l.inside(144, (*headers).wireless)
	case linkAVS:
		if len(l.rest) < 8 {
			return Other
		}
		return l.sized(int(binary.BigEndian.Uint32(l.rest[4:])), 8, (*headers).wireless)
	}
	return UnknownLink
}

// inside goes on with what follows a header of n bytes.
func (l *headers) inside(n int, next func(*headers) Kind) Kind {
	if len(l.rest) < n {
		return Other
	}
	l.depth++
	if l.depth > maxLayers {
		return Malformed
	}
	l.rest = l.rest[n:]
	l.length = l.length - n
	return next(l)
}

func (l *headers) ethernet() Kind { return l.typed(12, 14) }

// typed goes on after a header of size bytes that ends with the EtherType of the next one.
func (l *headers) typed(at, size int) Kind {
	if len(l.rest) < size {
		return Other
	}
	kind := binary.BigEndian.Uint16(l.rest[at:])
	return l.inside(size, func(l *headers) Kind { return l.etherType(kind) })
}

func (l *headers) etherType(kind uint16) Kind {
	const longest = 1500 // IEEE 802.3: up to here it is a length
	if kind <= longest {
		return l.llc()
	}
	switch kind {
	case typeIPv4, typeIPv6:
		return l.ip()
	case typeVLAN, typeQinQ, typeQinQOld:
		return l.typed(2, 4)
	case typeMPLS, typeMPLSMany:
		return l.mpls()
	case typePPPoE:
		return l.pppoe()
	case typeBridged:
		return l.ethernet()
	case typePPP:
		return l.ppp()
	}
	return Other
}

func (l *headers) pppoe() Kind {
	if len(l.rest) < 6 || l.rest[0] != 0x11 || l.rest[1] != 0 {
		return Other
	}
	return l.inside(6, (*headers).ppp)
}

// ppp reads RFC 1661's protocol field, with the address and control fields of RFC 1662
// before it or not, and compressed to one byte or not.
func (l *headers) ppp() Kind {
	d := l.rest
	n := 0
	if len(d) >= 2 && d[0] == 0xff && d[1] == 3 {
		n = 2
	}
	if len(d) < n+2 {
		return Other
	}
	protocol := uint16(d[n])
	n++
	if protocol&1 == 0 {
		protocol = protocol<<8 | uint16(d[n])
		n++
	}
	switch protocol {
	case 0x21, 0x57:
		return l.inside(n, (*headers).ip)
	case 0x281:
		return l.inside(n, (*headers).mpls)
	}
	return Other
}

// mpls passes the label stack. The next header has no type: IP shows in its first bits, Ethernet comes alone or after
// a control word that begins with 0 (RFC 4385).
func (l *headers) mpls() Kind {
	for len(l.rest) >= 5 {
		bottom := l.rest[2]&1 != 0
		l.depth++
		if l.depth > maxLayers {
			return Malformed
		}
		l.rest = l.rest[4:]
		l.length = l.length - 4
		if !bottom {
			continue
		}
		switch l.rest[0] >> 4 {
		case 4, 6:
			return l.ip()
		case 0:
			return l.inside(4, (*headers).ethernet)
		}
		return l.ethernet()
	}
	return Other
}
