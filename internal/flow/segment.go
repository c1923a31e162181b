// Package flow turns TCP segments, as a tap saw them, into a timeline for each direction of each connection: bytes
// outstanding, the window, repairs, and how the time divides among a few exclusive clocks. One pass, memory bounded
// by connections and rounds, never by segments.
//
// Times are nanoseconds since 1970 in Segment and since the connection's first segment in
// everything that is kept; sizes are bytes.
package flow

import (
	"encoding/binary"
	"net/netip"
)

// Segment is one TCP segment as the tap saw it.
type Segment struct {
	At       int64 // nanoseconds since 1970
	Src, Dst Endpoint
	Seq, Ack uint32
	// Payload is what the IP length says, never what was captured; a super-segment
	// counts whole.
	Payload      uint32
	TSVal, TSEcr uint32
	Window       uint16 // as on the wire, not scaled
	MSS          uint16
	Number       uint32 // of the packet in its file, from 1; 0: not known
	IPID         uint16 // IPv4 identification; 0 in IPv6
	Interface    uint16
	Flags        Flags
	TTL          uint8
	ECN          uint8 // the IP header's two bits
	Scale        uint8
	Options      Options
	SACKs        uint8 // blocks in SACK
	SACK         [4][2]uint32
}

// pure reports whether the segment only acknowledges.
func (s *Segment) pure() bool { return s.Payload == 0 && s.Flags&(SYN|FIN|RST) == 0 }

// Flags are the TCP header's nine control bits.
type Flags uint16

const (
	FIN Flags = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
	ECE
	CWR
	AE // with CWR and ECE a counter of marks where both ends agreed to that (RFC 9768)
)

// AllFlags has all bits of Flags.
const AllFlags = AE<<1 - 1

// Options says which options the segment carries and whether all could be read.
type Options uint8

const (
	HasMSS Options = 1 << iota
	HasScale
	HasSACKPermitted
	HasTimestamps
	OptionsCut  // the capture ends before the options do: absent is not known to be absent
	IsFragment  // only the datagram's first fragment
	BadChecksum // the packet was captured whole, and its TCP checksum is wrong
	IsTooBig    // no segment but an ICMP message that it did not fit; MSS is the router's MTU, or 0
)

// Endpoint is an address and a port, IPv4 in its mapped form, as three comparable words.
type Endpoint struct {
	Hi, Lo uint64
	Port   uint16
}

const mapped4 = 0xffff << 32

// Endpoint4 returns the endpoint of an IPv4 address as on the wire, read big endian.
func Endpoint4(addr uint32, port uint16) Endpoint {
	return Endpoint{Lo: mapped4 | uint64(addr), Port: port}
}

// AddrPort is the endpoint in the standard library's form.
func (e Endpoint) AddrPort() netip.AddrPort {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], e.Hi)
	binary.BigEndian.PutUint64(b[8:], e.Lo)
	return netip.AddrPortFrom(netip.AddrFrom16(b).Unmap(), e.Port)
}

func (e *Endpoint) is(o *Endpoint) bool { return e.Lo == o.Lo && e.Port == o.Port && e.Hi == o.Hi }

// SameHost reports whether both have one address.
func (e *Endpoint) SameHost(o *Endpoint) bool { return e.Lo == o.Lo && e.Hi == o.Hi }

func (e *Endpoint) less(o *Endpoint) bool {
	switch {
	case e.Hi != o.Hi:
		return e.Hi < o.Hi
	case e.Lo != o.Lo:
		return e.Lo < o.Lo
	}
	return e.Port < o.Port
}
