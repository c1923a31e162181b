package watch

import (
	"encoding/binary"
	"net/netip"
)

// maxPseudonyms bounds the memory of a long watch. Later networks share one pseudonym, and
// so do later addresses of a network.
const maxPseudonyms = 1 << 16

// pseudonyms replaces addresses by made-up ones, each by the same as long as the watch
// runs: networks by their order in 240.0.0.0/4 (reserved, RFC 1112 section 4) and fd00::/8
// (RFC 4193), hosts by their order in their network. So they say who is the same and which
// are neighbours, and nothing else: no key leads back. Addresses of this host's own
// loopback, and ports, stay.
type pseudonyms struct {
	networks map[netip.Prefix]uint32
	hosts    map[netip.Addr]uint32
	inside   map[netip.Prefix]uint32 // how many hosts of a network have one
}

func newPseudonyms() *pseudonyms {
	return &pseudonyms{map[netip.Prefix]uint32{}, map[netip.Addr]uint32{}, map[netip.Prefix]uint32{}}
}

func (p *pseudonyms) port(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(p.addr(a.Addr()), a.Port())
}

func (p *pseudonyms) addr(a netip.Addr) netip.Addr {
	if !a.IsValid() || a.IsLoopback() || a.IsUnspecified() {
		return a
	}
	a = a.Unmap().WithZone("")
	in := networkOf(a)
	network, ok := p.networks[in]
	if !ok {
		network = min(uint32(len(p.networks)+1), maxPseudonyms)
		if network < maxPseudonyms {
			p.networks[in] = network
		}
	}
	host, ok := p.hosts[a]
	if !ok {
		host = p.inside[in] + 1
		if len(p.hosts) < maxPseudonyms && network < maxPseudonyms {
			p.inside[in] = host
			p.hosts[a] = host
		}
	}
	if a.Is4() {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], 240<<24|network<<8|host&0xff)
		return netip.AddrFrom4(b)
	}
	var b [16]byte
	b[0] = 0xfd
	binary.BigEndian.PutUint32(b[2:], network)
	binary.BigEndian.PutUint32(b[12:], host)
	return netip.AddrFrom16(b)
}

// connection is a copy of one under its pseudonyms.
func (p *pseudonyms) connection(c *Connection) *Connection {
	made := *c
	made.Local = p.port(c.Local)
	made.Remote = p.port(c.Remote)
	return &made
}
