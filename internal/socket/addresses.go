package socket

import (
	"net"
	"net/netip"
	"slices"
)

// HostAddresses returns the addresses at which others may reach this host, that of the default route first. It leaves
// out loopback and link-local ones. It sends nothing.
func HostAddresses() (all []netip.Addr) {
	add := func(a netip.Addr) {
		a = a.Unmap().WithZone("")
		if a.IsGlobalUnicast() && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	for _, far := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} { // looks up a route
		if conn, err := net.Dial("udp", far); err == nil {
			add(conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr())
			conn.Close()
		}
	}
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			if network, ok := a.(*net.IPNet); ok {
				if one, ok := netip.AddrFromSlice(network.IP); ok {
					add(one)
				}
			}
		}
	}
	return all
}
