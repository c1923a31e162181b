package capture

import (
	"encoding/binary"
	"net/netip"
)

// be builds bytes from big-endian pieces: byte, uint16, uint32, []byte.
func be(parts ...any) []byte {
	var out []byte
	for _, p := range parts {
		switch p := p.(type) {
		case byte:
			out = append(out, p)
		case int:
			out = append(out, byte(p))
		case uint16:
			out = binary.BigEndian.AppendUint16(out, p)
		case uint32:
			out = binary.BigEndian.AppendUint32(out, p)
		case []byte:
			out = append(out, p...)
		default:
			panic("be: what is this?")
		}
	}
	return out
}

var macs = make([]byte, 12)

func ether(kind uint16, inner []byte) []byte { return be(macs, kind, inner) }

func ip4(protocol int, src, dst string, inner []byte) []byte {
	a, b := netip.MustParseAddr(src).As4(), netip.MustParseAddr(dst).As4()
	return be(0x45, 0, uint16(20+len(inner)), uint16(7), uint16(0x4000), 64, protocol, uint16(0), a[:], b[:], inner)
}

func ip6(protocol int, src, dst string, inner []byte) []byte {
	a, b := netip.MustParseAddr(src).As16(), netip.MustParseAddr(dst).As16()
	return be(uint32(6<<28), uint16(len(inner)), protocol, 64, a[:], b[:], inner)
}

// segment is a data segment with timestamps: 32 bytes of header.
func segment(srcPort, dstPort uint16, seq, ack uint32, payload int) []byte {
	return be(srcPort, dstPort, seq, ack, 0x80, 0x18, uint16(501), uint16(0), uint16(0),
		1, 1, 8, 10, uint32(111), uint32(222), make([]byte, payload))
}

func udp(dstPort uint16, inner []byte) []byte {
	return be(uint16(40000), dstPort, uint16(8+len(inner)), uint16(0), inner)
}

// pcapFile is a classic capture of packets a millisecond apart.
func pcapFile(link LinkType, packets ...[]byte) []byte {
	le := binary.LittleEndian
	out := le.AppendUint32(nil, magicMicro)
	out = le.AppendUint16(le.AppendUint16(out, 2), 4)
	out = le.AppendUint32(le.AppendUint64(out, 0), 262144)
	out = le.AppendUint32(out, uint32(link))
	for i, p := range packets {
		out = le.AppendUint32(le.AppendUint32(out, 1_700_000_000), uint32(i)*1000)
		out = le.AppendUint32(le.AppendUint32(out, uint32(len(p))), uint32(len(p)))
		out = append(out, p...)
	}
	return out
}

func block(order binary.AppendByteOrder, kind uint32, body []byte) []byte {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	size := uint32(len(body) + 12)
	out := order.AppendUint32(order.AppendUint32(nil, kind), size)
	return order.AppendUint32(append(out, body...), size)
}

func section(order binary.AppendByteOrder) []byte {
	body := order.AppendUint32(nil, byteOrderMagic)
	body = order.AppendUint16(order.AppendUint16(body, 1), 0)
	return block(order, blockSection, order.AppendUint64(body, ^uint64(0)))
}

func description(order binary.AppendByteOrder, link LinkType, options []byte) []byte {
	body := order.AppendUint16(order.AppendUint16(nil, uint16(link)), 0)
	return block(order, blockInterface, append(order.AppendUint32(body, 0), options...))
}

func enhanced(order binary.AppendByteOrder, iface uint32, ticks uint64, length int, data []byte) []byte {
	body := order.AppendUint32(nil, iface)
	body = order.AppendUint32(order.AppendUint32(body, uint32(ticks>>32)), uint32(ticks))
	body = order.AppendUint32(order.AppendUint32(body, uint32(len(data))), uint32(length))
	return block(order, blockEnhanced, append(body, data...))
}

// snoopFile is a capture as Solaris writes it, of packets a millisecond apart.
func snoopFile(packets ...[]byte) []byte {
	out := be([]byte(magicSnoop), uint32(2), uint32(4))
	for i, p := range packets {
		pad := make([]byte, -len(p)&3)
		out = be(out, uint32(len(p)), uint32(len(p)), uint32(snoopRecord+len(p)+len(pad)), uint32(0), uint32(1_700_000_000),
			uint32(i*1000), p, pad)
	}
	return out
}

// erfFile is a capture of Endace's cards, of packets a millisecond apart.
func erfFile(packets ...[]byte) []byte {
	var out []byte
	for i, p := range packets {
		fraction := (uint64(i)<<32 + 999) / 1000
		out = binary.LittleEndian.AppendUint64(out, 1_700_000_000<<32|fraction)
		out = be(out, 2, 0, uint16(erfHeader+2+len(p)), uint16(0), uint16(len(p)+4), uint16(0), p)
	}
	return out
}

// bzipCapture is pcapFile(linkEthernet, frame, frame), packed by bzip2.
const bzipCapture = "QlpoOTFBWSZTWfPXbFwAAFLvf/3YBEAAAUIEKAACAMAAAAQgABAACABEAQBAIgAgAHISqbU0AaDIYR6QSmkk2jUzQNJh" +
	"MPDSEDqKzIMCFcajs4ZjnYrxFBE0NJATRQTBYZDg0xFDhy5NpEdmoRLCA4iRIQmYiARKlC0U9PlrkSwIio3g/F3JFOFCQ89dsXA="
