package serve

import (
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/fullpipe-net/fullpipe/internal/peer"
)

// mostAddresses is how many of this host's addresses are told.
const mostAddresses = 8

// reachableAt are the PEERs by which others may reach a server that listens at ADDR:PORT:
// addresses of this host's interfaces, that of the way out first. A host's name need not
// mean anything elsewhere. Where there is no other address it is a loopback one.
func reachableAt(listen string) (all []string) {
	at, err := netip.ParseAddrPort(listen)
	if err != nil {
		return []string{listen}
	}
	addresses := []netip.Addr{at.Addr().Unmap()}
	if at.Addr().IsUnspecified() {
		addresses = hostAddresses(at.Addr().Is4())
	}
	for _, a := range addresses[:min(len(addresses), mostAddresses)] {
		if at.Port() == peer.DefaultPort {
			all = append(all, a.String())
		} else {
			all = append(all, net.JoinHostPort(a.String(), strconv.Itoa(int(at.Port()))))
		}
	}
	return all
}

// hostAddresses are those of the interfaces that are up; link-local ones need a zone and
// are left out.
func hostAddresses(only4 bool) (all []netip.Addr) {
	for _, far := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} { // asks for a route, sends nothing
		if conn, err := net.Dial("udp", far); err == nil {
			all = append(all, conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone(""))
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
					all = append(all, one.Unmap())
				}
			}
		}
	}
	var good []netip.Addr
	for _, a := range all {
		if !a.IsLoopback() && a.IsGlobalUnicast() && (a.Is4() || !only4) && !slices.Contains(good, a) {
			good = append(good, a)
		}
	}
	if len(good) == 0 {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	return good
}
