package socket

import (
	"net"
	"net/netip"
)

// AddrPort returns the address of a TCP or UDP socket as Unmap does; the zero value for another kind.
func AddrPort(a net.Addr) netip.AddrPort {
	at, ok := a.(interface{ AddrPort() netip.AddrPort })
	if !ok {
		return netip.AddrPort{}
	}
	return Unmap(at.AddrPort())
}

// Unmap returns an IPv4 address that is mapped into IPv6 as IPv4.
func Unmap(at netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()) }
