package socket

import "net/netip"

// Subscriber is whom an address is counted as where each host gets its share: an IPv4
// address by itself, of IPv6 the /64 that one subscriber has at least (RFC 6177).
func Subscriber(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	host, _ := a.Prefix(bits)
	return host
}
